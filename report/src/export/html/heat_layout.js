// How much was there in which second, at which offset within it?

// Rows of a second, from its begin.
const OFFSETS = 50;
const SECOND = 1e9;

// Weights by column and row. A column is a second, or several where there is no room for each: they are laid over each other.
function layoutHeat(model, selection, mostColumns) {
  const seconds = Math.max(Math.ceil(model.last / SECOND), 1);
  const each = Math.ceil(seconds / Math.max(mostColumns, 1));
  const columns = Math.ceil(seconds / each);
  const weights = new Float64Array(columns * OFFSETS);
  model.forSamples({ ...selection, from: 0, to: Infinity }, (i) => {
    const second = Math.min(Math.floor(model.time[i] / SECOND), seconds - 1);
    const row = Math.min(Math.floor(((model.time[i] - second * SECOND) * OFFSETS) / SECOND), OFFSETS - 1);
    weights[Math.floor(second / each) * OFFSETS + row] += model.period[i];
  });
  return { columns, each, weights, most: weights.reduce((most, weight) => Math.max(most, weight), 0) };
}

// The time from the earlier of two cells to the end of the later one; a cell: column and row.
function timeOfCells({ each }, one, other) {
  const start = ({ column, row }) => column * each * SECOND + (row * SECOND) / OFFSETS;
  const [first, last] = start(one) <= start(other) ? [one, other] : [other, one];
  return { from: start(first), to: start(last) + (each - 1) * SECOND + SECOND / OFFSETS };
}
