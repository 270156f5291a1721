/** The routes of the files of a run. */
import { STREAM } from "../../http/body-rules.ts";
import { errorContent, headers, type Response } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { RUNS } from "../errors.ts";
import { BYTES, counted, DIGESTS, done, inHeader, NO_ROOM, ok, plain, RUN } from "./declared.ts";
import { deleteOne, getOne, headOne, putOne } from "./files.ts";

const FILE = `${RUN}/files/*`;

const { run_not_found, file_not_found, invalid_request, invalid_range, run_completed } = RUNS;

const FILE_HEADERS = ["ETag", "Repr-Digest", "Accept-Ranges", "Last-Modified", "Content-Disposition"] as const;

/** The type follows from the file's name. */
const ANY_BYTES = { "*/*": BYTES["application/octet-stream"] };

const CONDITIONS = [
  inHeader("If-None-Match", "`ETag`s of what the client has."),
  inHeader("If-Modified-Since", "A date, where there is no `If-None-Match`."),
];

const FRESH: Response = {
  description: "The client has it already.",
  headers: headers("ETag", "Last-Modified", "Accept-Ranges"),
};

export const FILE_ROUTES = [
  counted({
    method: "PUT",
    path: FILE,
    name: "run_file_put",
    body: STREAM,
    operationId: "putFile",
    summary: `Upload a file of at most ${LIMITS.runFileBytesMax / 2 ** 20} MiB`,
    description:
      "`Content-Length` is needed. The file is there whole and durable, or not at all; one at the same path is replaced. A body that breaks off leaves nothing.",
    parameters: [
      ...DIGESTS,
      inHeader("If-Match", "The `ETag`s that may be replaced, or `*`."),
      inHeader("If-None-Match", "Those that may not; with `*` it must be new."),
    ],
    requestBody: { description: "The bytes of the file.", required: true, content: BYTES },
    responses: {
      "200": ok("It has replaced a file.", "StoredFile", "ETag"),
      "201": ok("It is new.", "StoredFile", "ETag"),
    },
    failures: [...[run_not_found, RUNS.length_required, RUNS.precondition_failed, RUNS.checksum_mismatch], ...NO_ROOM],
    handle: putOne,
  }),
  plain({
    method: "GET",
    path: FILE,
    name: "run_file",
    operationId: "getFile",
    summary: "Download a file of a completed run",
    description:
      "With one range in `Range` a part of it; with several, or a malformed one, the whole. The type of the content is told by the path's end.",
    parameters: [
      inHeader("Range", "`bytes=FROM-TO`, `bytes=FROM-` or `bytes=-COUNT`."),
      inHeader("If-Range", "An `ETag`: a range only of this very file, otherwise the whole."),
      ...CONDITIONS,
    ],
    responses: {
      "200": { description: "The whole file.", headers: headers(...FILE_HEADERS), content: ANY_BYTES },
      "206": { description: "The range.", headers: headers(...FILE_HEADERS, "Content-Range"), content: ANY_BYTES },
      "304": FRESH,
      "416": {
        description: `- \`${invalid_range.wire}\`: ${invalid_range.http}`,
        headers: headers("ETag", "Last-Modified", "Accept-Ranges", "Content-Range"),
        content: errorContent([invalid_range.wire]),
      },
    },
    failures: [run_not_found, file_not_found, invalid_range, invalid_request],
    handle: getOne,
  }),
  plain({
    method: "HEAD",
    path: FILE,
    name: "run_file_head",
    operationId: "headFile",
    summary: "The headers of a file of a completed run",
    description: "Those of the whole file, and `Content-Length`. No answer has a body, failures neither.",
    parameters: CONDITIONS,
    responses: {
      "200": { description: "The file is there.", headers: headers(...FILE_HEADERS) },
      "304": FRESH,
    },
    failures: [run_not_found, file_not_found, invalid_request],
    handle: headOne,
  }),
  plain({
    method: "DELETE",
    path: FILE,
    name: "run_file_delete",
    operationId: "deleteFile",
    summary: "Delete a file of an unfinished run",
    responses: done("The file is gone."),
    failures: [run_not_found, file_not_found, run_completed, invalid_request],
    handle: deleteOne,
  }),
];
