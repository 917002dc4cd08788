// The encoder alone, for those who change one line: `import encode from "towebp/encode"`.

export { encode, encode as default, init, Problem } from "./index.js";
