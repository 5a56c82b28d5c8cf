// The figure of writing once more, with the model of Shakespeare, which reads byte pairs (chapter on generation).
export { mount } from "./sampling.mjs";
