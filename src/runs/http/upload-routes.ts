/** The routes of multipart uploads. */
import { Type } from "@sinclair/typebox";
import { json as jsonBody, STREAM } from "../../http/body-rules.ts";
import { headers, json } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { RUNS } from "../errors.ts";
import { BYTES, counted, DIGESTS, done, inQuery, NO_ROOM, ok, plain, RUN } from "./declared.ts";
import { deleteUpload, getUpload, postUpload, putUpload } from "./uploads.ts";

const UPLOAD = `${RUN}/uploads/*`;

const { upload_not_found, upload_in_progress, checksum_mismatch, invalid_request } = RUNS;

const reference = (schema: string) => ({ $ref: `#/components/schemas/${schema}` });

const uploadId = (required: boolean) =>
  inQuery("upload_id", required, "Of the upload, as its start answered.", Type.String());

export const UPLOAD_ROUTES = [
  plain({
    method: "GET",
    path: UPLOAD,
    name: "run_upload",
    operationId: "getUpload",
    summary: "Resume a multipart upload",
    description:
      "With `upload_id`: the parts that have come. Without: the unfinished uploads of the path, at most one.",
    parameters: [uploadId(false)],
    responses: {
      "200": {
        description: "What has come, or the unfinished uploads.",
        headers: headers(),
        content: { "application/json": { schema: { anyOf: ["UploadState", "UploadList"].map(reference) } } },
      },
    },
    failures: [upload_not_found, invalid_request],
    handle: getUpload,
  }),
  counted({
    method: "POST",
    path: UPLOAD,
    name: "run_upload_post",
    body: jsonBody(LIMITS.runJsonBytesMax, { mayBeEmpty: true }),
    operationId: "postUpload",
    summary: "Start a multipart upload, or finish one",
    description: [
      `Without \`upload_id\` it starts an upload of \`size\` bytes, which are reserved, and owns the path. Parts have \`part_size\` bytes each but the last; they come in any order, several at once. An unfinished upload goes after ${LIMITS.runUploadSeconds / 86_400} days.`,
      "With `upload_id` it finishes that one: the parts become the file, whose SHA-256 is computed from what is stored. While that runs the quota must have room for the file twice, and a repeat is 409. It may take many seconds for a large file, and goes on when the client leaves; a repeat after its end is answered the same until `expires_at`, as long as the file is not deleted and no later upload of its path is finished.",
    ].join("\n\n"),
    parameters: [uploadId(false)],
    requestBody: {
      description:
        "To start, without `upload_id`: `size`, and `sha256` if it is known. To finish: `parts`, an empty object, or no body at all.",
      required: false,
      content: json("NewUpload"),
    },
    responses: {
      "200": ok("Finished: the file is stored.", "StoredFile", "ETag"),
      "201": ok("Started.", "StartedUpload"),
    },
    failures: [upload_not_found, RUNS.run_incomplete, RUNS.too_many_uploads, checksum_mismatch, ...NO_ROOM],
    handle: postUpload,
  }),
  counted({
    method: "PUT",
    path: UPLOAD,
    name: "run_upload_put",
    body: STREAM,
    operationId: "putPart",
    summary: `Upload one part, of at most ${LIMITS.runFileBytesMax / 2 ** 20} MiB`,
    description: "`Content-Length` is needed. The same part again replaces it.",
    parameters: [
      uploadId(true),
      inQuery("part", true, "Its number, from 1.", Type.Integer({ minimum: 1 })),
      ...DIGESTS,
    ],
    requestBody: { description: "The bytes of the part.", required: true, content: BYTES },
    responses: { "200": ok("It is stored.", "UploadPart") },
    failures: [upload_not_found, upload_in_progress, RUNS.length_required, checksum_mismatch],
    handle: putUpload,
  }),
  plain({
    method: "DELETE",
    path: UPLOAD,
    name: "run_upload_delete",
    operationId: "deleteUpload",
    summary: "Abort a multipart upload",
    description: "Gives its path and its reservation back.",
    parameters: [uploadId(true)],
    responses: done("It is gone."),
    failures: [upload_not_found, upload_in_progress, invalid_request],
    handle: deleteUpload,
  }),
];
