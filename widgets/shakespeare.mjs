// The figure of writing once more, with the model of Shakespeare, which reads byte pairs (chapter 08).
export { mount } from "./sampling.mjs";
