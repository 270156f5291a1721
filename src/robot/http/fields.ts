/**
 * The fields of `POST /v1/chat/completions` as documented JSON Schema: ranges, units, defaults. The checks in `checks.ts`
 * decide; a test sends what these schemas accept and refuse to the route and compares.
 */
import { type NumberOptions, type TSchema, Type } from "@sinclair/typebox";
import { optional } from "../../http/check.ts";
import { LIMITS } from "../../limits.ts";
import { FLOAT32_LIMIT, observationIdPattern, sessionIdPattern } from "../checks.ts";

const ENDED_HOURS = LIMITS.sessionEndedMs / 3_600_000;

/** Start of a frame's data URL. */
export const PREFIX = "data:image/jpeg;base64,";
/** Base64 of the three bytes that `startsAsJpeg` looks for. */
const START = "/9j/";
/** Groups of four, the last one padded, with no bit set that the padding discards. */
const GROUPS = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";

/** What `readImages` of checks.ts accepts. */
const imageUrlSchema = Type.String({
  pattern: `^${PREFIX}${START}${GROUPS}$`,
  maxLength: PREFIX.length + Math.ceil(LIMITS.jpegBytesMax / 3) * 4,
  description:
    `\`${PREFIX}\` and the base64 (RFC 4648, padded, no line breaks) of a JPEG file. The file has at most ${LIMITS.jpegBytesMax} bytes ` +
    `and ${LIMITS.jpegEdgePxMax} pixels along an edge. It is baseline or progressive, 8 bits, grey or colour, not CMYK. ` +
    "A file of several scans, such as a progressive one, is refused if its pixels times its scans take too long to decode: " +
    "ten scans of 3840 x 2160 pass, and more scans of a smaller picture. EXIF is not read: rotate the pixels. " +
    "Frames of any size are resized as the model's bundle says.",
});

const TextPart = Type.Object(
  {
    type: Type.Literal("text"),
    text: Type.String({
      description:
        "The task instruction, the same in every request of a session, compared exactly. Several text parts are joined by " +
        "line breaks.",
    }),
  },
  { title: "Text part" },
);

const ImagePart = Type.Object(
  { type: Type.Literal("image_url"), image_url: Type.Object({ url: imageUrlSchema }) },
  { title: "Image part" },
);

/** Image parts, and at least one text part that is not blank. */
const ObservedContent = Type.Array(Type.Union([TextPart, ImagePart]), {
  description:
    "Text parts are the instruction, image parts the camera frames: camera by camera in the model's order, and within a " +
    "camera the oldest frame first. A session's first request sends the model's first number of frames per camera, a later " +
    "one the number that the previous chunk's `next_frames_per_camera` names. Text may stand anywhere among the images.",
  minItems: 2,
  allOf: [
    { contains: Type.Object({ type: Type.Literal("image_url") }) },
    { contains: Type.Object({ type: Type.Literal("text"), text: Type.String({ pattern: "\\S" }) }) },
  ],
});

const QuestionContent = Type.Union([Type.String(), Type.Array(TextPart)], {
  description: "Any text; it is not interpreted.",
});

const messages = (content: TSchema) =>
  Type.Array(Type.Unknown(), {
    minItems: 1,
    contains: Type.Object({ role: Type.Literal("user"), content }, { title: "User message" }),
    description:
      "Messages of `role` `system`, `user` or `assistant`. Only the last one of `role` `user` is read; what else stands in " +
      "the array may be anything. (JSON Schema cannot say `last`: this one asks for any such user message.)",
  });

export const observedMessages = messages(ObservedContent);
export const questionMessages = messages(QuestionContent);

const Seed = Type.Integer({
  minimum: 0,
  maximum: LIMITS.seedMax,
  default: 0,
  description:
    "Seed of the noise that a chunk is made from. Noise depends on bundle, seed and step alone: the same observations " +
    "from a session's first one on give the same chunks in any session, bit for bit on a CPU, within 1e-3 on a GPU.",
});

const values = (count: number, description: string, range: NumberOptions = {}) =>
  Type.Array(Type.Number({ exclusiveMinimum: -FLOAT32_LIMIT, exclusiveMaximum: FLOAT32_LIMIT, ...range }), {
    minItems: count,
    maxItems: count,
    description,
  });

const robotStateSchema = Type.Union(
  [
    Type.Object(
      {
        joint_position: values(12, "Radians: left joints 1 to 6, then right joints 1 to 6."),
        gripper_position: values(2, "Left, then right: 0 is closed, 1 is open.", { minimum: 0, maximum: 1 }),
      },
      { title: "Joint state", description: "For models with joint state. `cartesian_position` is ignored." },
    ),
    Type.Object(
      {
        joint_position: optional(values(0, "Empty, or left out.")),
        gripper_position: values(2, "Left, then right, in the checkpoint's own gripper units."),
        cartesian_position: values(
          18,
          "Left xyz in metres and rotation6d, then right the same. A rotation6d is the first two columns of the rotation " +
            "matrix, one after the other; neither may be shorter than 1e-6, nor the two within 1e-4 of parallel.",
        ),
      },
      { title: "Cartesian state", description: "For models with Cartesian state." },
    ),
  ],
  {
    description:
      "The robot's state when the frames were taken; its shape depends on the model. All values are finite as float32.",
  },
);

export const FIELDS = {
  model: Type.String({
    minLength: 1,
    description: "A served model id, exactly as written; `GET /readyz` lists them.",
    examples: ["vendorB/molmoact2:yam"],
  }),
  stream: optional(
    Type.Boolean({ default: false, description: "`true` answers with server-sent events; see the 200 response." }),
  ),
  handoff: optional(
    Type.Boolean({ default: false, description: "Must not be `true`: this service hands no session over." }),
  ),
  seed: optional(Seed),
  deadline_ms: optional(
    Type.Number({
      minimum: LIMITS.deadlineMs.min,
      maximum: LIMITS.deadlineMs.max,
      description:
        "For how long the chunk is of use, milliseconds from the arrival of the request's last byte. An observation that cannot be " +
        "answered in that time is refused at once; one that is not ready when it has passed is taken back, also if the model is at " +
        "it. Both are `engine_unavailable` with `Retry-After`, cost nothing, and leave the step as it was; a repeat of the " +
        "`observation_id` runs anew. A chunk whose record is just being made durable then is answered and charged. A longer time " +
        "than the service allows for a chunk changes nothing. A repeat may have another one.",
    }),
  ),
  session_id: optional(
    Type.String({
      pattern: sessionIdPattern.source,
      description:
        `Name of the episode, chosen by the client: 1 to ${LIMITS.sessionIdCharsMax} code points, all printable (none of ` +
        "Unicode's general categories C*), no white space at either end. Required with image parts by models that keep " +
        "memory over an episode. A new value starts a session; one whose session has ended within the last " +
        `${ENDED_HOURS} hours answers \`session_expired\`. Scoped to account and model. ` +
        "Without it each request stands alone: it takes no slot, and the `anon-` id in its chunk cannot be used again.",
    }),
  ),
  robot_state: robotStateSchema,
  action_horizon: optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.actionHorizonMax,
      description:
        "Rows to answer, at most the model's rows per chunk; default all. The model computes and bills the whole chunk.",
    }),
  ),
  num_inference_steps: optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.inferenceStepsMax,
      description: "Accepted for compatibility; no model reads it.",
    }),
  ),
  expected_step: optional(
    Type.Integer({
      minimum: 0,
      description:
        "The session's next step as the client counts it, a guard against lost or doubled requests and against a second robot under " +
        "the same `session_id`. A difference is " +
        "`session_step_conflict`, and nothing runs. Above 0 it needs a live session: without `session_id` it conflicts, with an " +
        "unknown one it is `session_expired`.",
    }),
  ),
  observation_id: optional(
    Type.String({
      pattern: observationIdPattern.source,
      description:
        "Makes the request safe to repeat. The same id with the same observation (model, session, instruction, frames, state, " +
        "`expected_step`, `action_horizon`, `num_inference_steps`, `seed`; over HTTP or on a socket) returns the first answer " +
        "with no new execution and no charge, and says `Idempotent-Replayed: true`; with another observation it is " +
        "`idempotency_conflict`. `stream` and `deadline_ms` may differ. The replay comes before the session's " +
        "checks, so an old step can be replayed after the session has moved on. A failed run frees the id. Results are kept " +
        `for at least ${LIMITS.replyKeptMs / 60_000} minutes after the session ends, ids for ${ENDED_HOURS} hours. Scoped to account, model and session.`,
    }),
  ),
} as const;

/** The two forms of a body. Unknown extra properties are accepted in both. */
export const OBSERVATION = {
  title: "Observation",
  description: "A request with image parts: the reply holds an action chunk.",
} as const;
export const QUESTION = {
  title: "Question",
  description:
    "A request without image parts: the reply is the model's description in words: cameras in order, frames per camera, state " +
    "shape, rows, dt, action dim and space. It needs a key, costs nothing and touches no session; fields that only an " +
    "observation has are not looked at.",
} as const;
