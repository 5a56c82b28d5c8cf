// Read the files that `save_model` writes: safetensors, the model's configuration and tokenizer in the header.
import { matrix } from "./arrays.mjs";

const KINDS = { F32: { numbers: Float32Array, name: "float32" }, I8: { numbers: Int8Array, name: "int8" },
  I16: { numbers: Int16Array, name: "int16" }, U16: { numbers: Uint16Array, name: "uint16" } };
const hint = "Reload the page, or run the cell again.";

/** The tensors of a file as matrices (a vector is one row), its configuration, and its tokenizer's parts or null. */
export function readSafetensors(buffer) {
  const damaged = (what) => new Error(`The model's file is damaged: ${what}. ${hint}`);
  if (buffer.byteLength < 8) throw damaged(`it has ${buffer.byteLength} bytes`);
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (length > buffer.byteLength - 8) throw damaged("its header is cut short");
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, length)));
  } catch {
    throw damaged("its header cannot be read");
  }
  const { __metadata__: metadata = {}, ...entries } = header;
  const tensors = new Map();
  for (const [name, { dtype, shape, data_offsets: place }] of Object.entries(entries)) {
    if (!Array.isArray(shape) || !Array.isArray(place)) throw damaged(`its header does not say where ${name} is`);
    const [start, stop] = place;
    const size = shape.reduce((product, side) => product * side, 1);
    const kind = KINDS[dtype];
    if (!kind) throw damaged(`${name} holds ${dtype}, and one of ${Object.keys(KINDS).join(", ")} is expected`);
    if (stop - start !== kind.numbers.BYTES_PER_ELEMENT * size || 8 + length + stop > buffer.byteLength) throw damaged(`${name} is cut short`);
    const numbers = new kind.numbers(buffer.slice(8 + length + start, 8 + length + stop));
    tensors.set(name, { ...(shape.length === 2 ? matrix(...shape, numbers) : matrix(1, size, numbers)), shape, kind: kind.name });
  }
  function parsed(part) {
    try {
      return part in metadata ? JSON.parse(metadata[part]) : null;
    } catch {
      throw damaged(`its ${part} cannot be read`);
    }
  }
  return { tensors, config: parsed("config"), tokenizer: parsed("tokenizer"), metadata };
}

/** Raise an error unless the numbers are those that were saved, as `digest` of saving.py does. */
export async function checkSeal({ tensors, metadata }) {
  if (!globalThis.crypto?.subtle) return; // browsers offer it on https and on this machine only
  const text = new TextEncoder();
  const sealed = ["config", "tokenizer", "metadata"].filter((part) => part in metadata).map((part) => metadata[part]);
  const parts = [text.encode(sealed.map((words) => `${[...words].length} ${words} `).join(""))];
  for (const name of [...tensors.keys()].sort()) {
    const { shape, data, kind } = tensors.get(name);
    const spelt = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
    parts.push(text.encode(`${name} ${kind} ${spelt} `), new Uint8Array(data.buffer));
  }
  const hash = await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer());
  const found = [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== metadata.sha256) throw new Error(`The model's file is damaged: its numbers are not those saved. ${hint}`);
}

/** The tensors, those in eight bits as floats again: whole numbers times the step of their column. */
export function inFloats(tensors) {
  const floats = new Map(tensors);
  for (const [name, { kind, rows, columns, data }] of tensors) {
    if (kind !== "int8") continue;
    const steps = tensors.get(`${name}.step`).data;
    floats.set(name, matrix(rows, columns, Float32Array.from(data, (number, i) => number * steps[i % columns])));
    floats.delete(`${name}.step`);
  }
  return floats;
}
