// Runs in a worker, so that the page stays quick while a model computes.
import { answer } from "./host.mjs";

self.addEventListener("message", async ({ data: { number, ...request } }) => {
  if (request.method === "hello") return self.postMessage({ number }); // it has started
  try {
    const value = await answer(request, (loaded, total) => self.postMessage({ number, loaded, total }));
    self.postMessage({ number, value });
  } catch (error) {
    self.postMessage({ number, error: error.message });
  }
});
