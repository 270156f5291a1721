/** Writes of the runs of robots. */
export { fileAbort, fileBegin, fileCommit, fileDelete } from "./files.ts";
export * from "./lost.ts";
export * from "./sweep.ts";
export {
  joinBegin,
  joinCommit,
  joinEnd,
  partCommit,
  partsDrop,
  uploadBegin,
  uploadDrop,
  uploadToken,
} from "./uploads.ts";
export * from "./whole.ts";
