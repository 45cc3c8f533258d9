// What do the blocks of data say?

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// What a block's text stands for.
async function unpacked(text) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser is too old: it has no DecompressionStream (Chrome 80, Firefox 113, Safari 16.4).");
  const packed = new Blob([fromBase64(text)]).stream();
  const plain = packed.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

async function readData(text) {
  const bytes = await unpacked(text);
  const end = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, end)));
  if (header.version !== 1) throw new Error(`The data is of version ${header.version}, not 1.`);
  return { header, columns: readColumns(bytes, end, header.columns) };
}

// LEB128. Times and periods have more bits than a 32-bit number.
function readColumns(bytes, at, names) {
  const columns = {};
  for (const [name, count] of names) {
    const wide = name === "sample.after" || name === "sample.period";
    const values = wide ? new Float64Array(count) : new Int32Array(count);
    for (let i = 0; i < count; i++) {
      let value = bytes[at++];
      if (value > 127) {
        value -= 128;
        let scale = 128;
        let byte;
        do {
          byte = bytes[at++];
          value += (byte & 127) * scale;
          scale *= 128;
        } while (byte > 127);
      }
      values[i] = value;
    }
    columns[name] = values;
  }
  return columns;
}
