export { encode, encode as default, init, Problem, type EncodeOptions } from "./index.js";
