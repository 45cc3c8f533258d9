// What do canvases have in common: a size in pixels of the screen, and a time that is selected by dragging?

// The canvas in this size, with what draws on it.
function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

// What a pointer that is dragged across a canvas does: moved and then done get the two shares of the width between which it was dragged. Where it
// was not, click gets the event.
function dragged(canvas, { moved, done, click }) {
  let start = null;
  const share = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - bounds.left) / bounds.width, 0), 1);
  };
  const isDrag = (event) => Math.abs(share(event) - start) * canvas.clientWidth > 3;
  const shares = (event) => [start, share(event)].sort((one, other) => one - other);
  canvas.addEventListener("pointerdown", (event) => {
    start = share(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => start !== null && isDrag(event) && moved(...shares(event)));
  canvas.addEventListener("pointerup", (event) => {
    if (start === null) return;
    if (isDrag(event)) done(...shares(event));
    else click(event);
    start = null;
  });
  canvas.addEventListener("pointercancel", () => (start = null));
}
