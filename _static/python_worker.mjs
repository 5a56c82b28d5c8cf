// Python with NumPy and the checks of the package; it is told where its files lie, and then one piece of code after the other.

const FILES = ["pyodide.asm.wasm", "python_stdlib.zip", "numpy.zip", "plainformer.zip"];
const fetched = globalThis.fetch.bind(globalThis);
let answer;

async function start({ folder, size }) {
  let total = 0;
  const contents = Object.fromEntries(await Promise.all(FILES.map(async (name) => {
    const isPacked = name.endsWith(".wasm"); // servers differ in whether they pack it
    const reply = await fetched(folder + name + (isPacked ? ".gz" : ""));
    if (!reply.ok) throw new Error(`${name}: status ${reply.status}`);
    const counted = reply.body.pipeThrough(new TransformStream({
      transform(chunk, out) {
        postMessage({ fetched: (total += chunk.length), size });
        out.enqueue(chunk);
      },
    }));
    const whole = isPacked ? counted.pipeThrough(new DecompressionStream("gzip")) : counted;
    return [folder + name, await new Response(whole).arrayBuffer()];
  })));
  // Pyodide asks for its files by itself.
  globalThis.fetch = (address, ...options) => {
    const name = String(address);
    if (!(name in contents)) return fetched(address, ...options);
    return Promise.resolve(new Response(contents[name], { headers: { "Content-Type": name.endsWith(".wasm") ? "application/wasm" : "application/zip" } }));
  };
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  postMessage({ starting: true });
  const python = await loadPyodide({ indexURL: folder });
  for (const name of ["numpy.zip", "plainformer.zip"]) python.unpackArchive(contents[folder + name], "zip");
  const check = python.pyimport("plainformer.exercises.page").answer;
  answer = ({ code, functions, before }) => {
    const [isRight, said] = check(code, python.toPy(functions), python.toPy(before)).toJs();
    return { isRight, said };
  };
  postMessage({ ready: true });
}

globalThis.onmessage = ({ data }) => {
  if (data.folder) start(data).catch((error) => postMessage({ failed: String(error) }));
  else postMessage(answer(data));
};
