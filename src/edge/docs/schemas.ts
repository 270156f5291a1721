/** What this service answers, as JSON Schema. The replies are printed by hand for speed; a test checks them against these. */
import { type TSchema, Type } from "@sinclair/typebox";
import { STATIONS } from "../../engine/engine.ts";
import { LIMITS } from "../../limits.ts";
import { LLM_IDS } from "../../llm/models.ts";
import { observationSchema, questionSchema } from "../robot-http/checks.ts";
import { OAUTH_MEANINGS } from "./meanings.ts";

const text = (description: string) => Type.String({ description });
const count = (description: string) => Type.Integer({ minimum: 0, description });
/** A string out of a list; one by one, because the plugin would drop the description of a union. */
const oneOf = (values: readonly string[], description: string) => Type.String({ enum: [...values], description });

const STATION_TEXTS: Readonly<Record<(typeof STATIONS)[number], string>> = {
  decode: "JPEG to normalised tensor.",
  queue: "Waiting for a replica of the model.",
  prefill: "Images, text and state to the model's prefix cache.",
  denoise: "All flow steps.",
  encode: "Denormalising and printing.",
};

const ActionChunk = Type.Object(
  {
    session_id: text("The request's, or an `anon-` id where it had none."),
    step: count("Zero-based index of the chunk in its session."),
    dt: Type.Number({ exclusiveMinimum: 0, description: "Seconds between two rows." }),
    action_dim: Type.Integer({ minimum: 1, description: "Values per row." }),
    action_space: oneOf(
      ["joint_position", "cartesian_position"],
      "`joint_position`: left joints 1 to 6, left gripper, right joints 1 to 6, right gripper. `cartesian_position`: left " +
        "xyz, rotation6d, gripper, then right the same.",
    ),
    actions: Type.Array(Type.Array(Type.Number()), {
      minItems: 1,
      maxItems: LIMITS.actionHorizonMax,
      description:
        "Rows of `action_dim` values in the robot's units, absolute: radians, metres, grippers as in `robot_state`. Finite " +
        "float32 values, each in the shortest form that reads back to the same float32, within the range that the bundle " +
        "has for its column: what is outside is clamped, or fails the run, as the bundle says.",
    }),
    next_frames_per_camera: Type.Integer({
      minimum: 1,
      description: "Frames per camera that the session's next request must carry.",
    }),
    timing_ms: Type.Object(
      Object.fromEntries(
        STATIONS.map((station) => [station, Type.Number({ minimum: 0, description: STATION_TEXTS[station] })]),
      ),
      {
        description:
          "Milliseconds at each station, with microsecond resolution. Their sum and the transport explain the client's time.",
      },
    ),
    cache_reset: Type.Optional(
      Type.Literal(true, {
        description: "There when the episode's memory window was full and started anew in this run.",
      }),
    ),
  },
  { title: "Action chunk", description: "The next second of motion: the JSON text in the reply's `content`." },
);

const Usage = Type.Object(
  {
    prompt_tokens: count("Image, text and state tokens, those kept in the episode's memory included."),
    prompt_tokens_details: Type.Object({
      cached_tokens: count("Those kept from earlier chunks of the episode: 0 at step 0 and for models without memory."),
    }),
    completion_tokens: count("Rows that the model computed, before any cut by `action_horizon`."),
    total_tokens: count("The sum of both."),
  },
  { title: "Usage", description: "All zeros for a question." },
);

const content = (description: string) =>
  Type.String({
    description,
    contentMediaType: "application/json",
    contentSchema: { $ref: "#/components/schemas/ActionChunk" },
  });

const CONTENT =
  "For an observation the action chunk as JSON text, to be parsed once more; for a question the model's description as plain text.";

const head = (object: string) => ({
  id: Type.String({ pattern: "^gen_[0-9A-Za-z]{24,}$", description: "Id of this generation; ids sort by time." }),
  object: Type.Literal(object),
  created: count("Unix seconds."),
  model: text("The model id, as in the request."),
});

const ChatCompletion = Type.Object(
  {
    ...head("chat.completion"),
    choices: Type.Array(
      Type.Object({
        index: Type.Literal(0),
        message: Type.Object({ role: Type.Literal("assistant"), content: content(CONTENT) }),
        finish_reason: oneOf(["stop", "error"], "`stop`."),
      }),
      { minItems: 1, maxItems: 1 },
    ),
    usage: Usage,
  },
  { title: "Chat completion" },
);

const ErrorObject = Type.Object(
  {
    message: text("For people, and free to change: what was wrong, what was expected, what to do next."),
    type: oneOf(
      ["authentication_error", "billing_error", "rate_limit_error", "api_error", "invalid_request_error"],
      "Coarse: 401, 402, 429, 5xx, all else.",
    ),
    param: Type.Optional(
      text("The request field at fault, only where one is: `messages[0].content[2].image_url.url` for example."),
    ),
    code: text("The value to branch on."),
  },
  { title: "Error object" },
);

const ChatCompletionChunk = Type.Object(
  {
    ...head("chat.completion.chunk"),
    choices: Type.Array(
      Type.Object({
        index: Type.Literal(0),
        delta: Type.Object(
          { role: Type.Optional(Type.Literal("assistant")), content: Type.Optional(content(CONTENT)) },
          { description: "Whole in the first event, empty in the next." },
        ),
        finish_reason: Type.Unsafe<string | null>({
          type: ["string", "null"],
          enum: [null, "stop", "error"],
          description:
            "`null` beside the content, then `stop`; `error` when the run failed after the stream had started.",
        }),
      }),
      { minItems: 1, maxItems: 1 },
    ),
    usage: Type.Optional(Usage),
    error: Type.Optional(ErrorObject),
  },
  { title: "Event of a streamed answer" },
);

const Failure = Type.Object({ error: ErrorObject }, { title: "Failure" });

const Alive = Type.Object({ status: Type.Literal("alive") }, { title: "Alive" });

const Ready = Type.Object(
  {
    status: Type.Literal("ready"),
    models: Type.Array(Type.String(), { description: "The served model ids." }),
  },
  { title: "Ready" },
);

const NotReady = Type.Object(
  {
    error: ErrorObject,
    missing: Type.Array(Type.String(), { minItems: 1, description: "What is missing, a sentence each." }),
  },
  { title: "Not ready" },
);

/** By their names in the document. */
const ModelList = Type.Object({
  object: Type.Literal("list"),
  data: Type.Array(
    Type.Object({
      id: oneOf(LLM_IDS, "A language model's id, exactly as requests name it."),
      object: Type.Literal("model"),
      created: count("Unix seconds."),
      owned_by: text("Who serves it."),
    }),
  ),
});

const DeviceAuthorization = Type.Object({
  device_code: text("The device's secret: it asks for its key with it."),
  user_code: Type.String({
    pattern: "^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$",
    description: "What the person compares and confirms.",
  }),
  verification_uri: text("The page where it is confirmed."),
  verification_uri_complete: text("The same page with the code filled in; it still has to be confirmed there."),
  expires_in: count("Seconds until the code is void."),
  interval: count("Seconds to wait between two questions for the key."),
});

const Token = Type.Object({
  access_token: text("The API key, whole. It is told once."),
  token_type: Type.Literal("Bearer"),
});

const Nothing = Type.Object({}, { description: "An empty object." });

const OauthFailure = Type.Object({
  error: oneOf(
    Object.keys(OAUTH_MEANINGS),
    Object.entries(OAUTH_MEANINGS)
      .map(([error, meaning]) => `\`${error}\`: ${meaning}`)
      .join(" "),
  ),
  error_description: text("For people; can change."),
});

export const SCHEMAS = {
  Observation: observationSchema,
  Question: questionSchema,
  ChatCompletion,
  ActionChunk,
  ChatCompletionChunk,
  Failure,
  Alive,
  Ready,
  NotReady,
  ModelList,
  DeviceAuthorization,
  Token,
  Nothing,
  OauthFailure,
} as const satisfies Record<string, TSchema>;
