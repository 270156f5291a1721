/**
 * Every bound of the specification and of our queues, with its unit; derived ones are computed and asserted here.
 * Nothing else in the project writes such a number.
 */
import { assert } from "./std/assert.ts";

const KiB = 1024;
const MiB = 1024 * KiB;

export const LIMITS = {
  // HTTP, robot route (specification, Limits)
  robotBodyBytesMax: 8 * MiB,
  jpegBytesMax: 262_144,
  jpegEdgePxMax: 4096,
  sessionIdCharsMax: 128,
  observationIdCharsMax: 128,
  actionHorizonMax: 30,
  inferenceStepsMax: 4,
  sessionIdleMs: 60_000,
  seedMax: Number.MAX_SAFE_INTEGER,
  // Sign-in and device login (contract section 6)
  /** A form of a page, or the body of an OAuth route. */
  formBytesMax: 16 * KiB,
  deviceLoginSeconds: 15 * 60,
  devicePollSeconds: 5,
  /** Of a machine's name, as a key carries it. */
  deviceNameCharsMax: 64,
  keyNameCharsMax: 128,
  emailCharsMax: 254,
  passwordCharsMin: 12,
  passwordBytesMax: 1_024,
  signInSeconds: 7 * 86_400,
  linkSeconds: 86_400,
  /** Within which tries are counted. */
  attemptSeconds: 15 * 60,
  /** Sign-ins with one e-mail from one network, with one e-mail, from one network: an IPv4 address, or an IPv6 /64. */
  signInTriesMax: 10,
  emailTriesMax: 100,
  networkTriesMax: 50,
  /** User codes that one account, or one network, may enter or decide: a login takes two. */
  codeTriesMax: 20,
  codeNetworkTriesMax: 60,
  /** Device logins that one network may begin. */
  deviceTriesMax: 60,
  /** Accounts that one network may make, where sign-up is open. */
  signUpTriesMax: 10,
  /** Passwords that wait to be hashed: each takes a core for some tens of milliseconds. */
  passwordsWaitingMax: 16,
  /** Of these, those of one network. */
  networkPasswordsMax: 2,
  /** Keys of one account that are valid. */
  accountKeysMax: 200,
  /** Keys that a list shows: the valid ones, then those revoked last. */
  keysListedMax: 400,
  // WebSocket (specification, Limits; contract section 3)
  socketTextCharsMax: 65_536,
  /** Larger messages end the connection before they are whole. */
  socketPayloadBytesMax: MiB,
  socketObservationsMax: 8,
  /** Messages that no observation in progress has taken yet. */
  socketPendingBytesMax: 16 * MiB,
  socketPendingMessagesMax: 128,
  /** Answers that a client does not read. */
  socketUnsentBytesMax: MiB,
  /** A client that says nothing, not even to a ping, is gone: early enough for its session to be resumed. */
  socketSilentSeconds: 20,
  /** How long a close may wait for a client that does not read. */
  socketCloseMs: 2_000,
  socketsMax: 4_096,
  accountSocketsMax: 3_072,
  // JSON (contract section 1)
  jsonDepthMax: 64,
  jsonValuesMax: 20_000,

  // ours
  /**
   * Request bodies and messages held in memory at once, over all connections; the next one is refused. What the server has of a
   * WebSocket message that is not whole yet is beyond our sight: at most `socketPayloadBytesMax` of each connection.
   */
  ingressBytesMax: 384 * MiB,
  /** Of these, what one account may have: a thousand requests of three large frames. */
  ingressOwnerShare: 0.75,
  /** From the first byte of a request to the last of its body. */
  bodyMs: 30_000,
  /** Above every body that a route accepts, so that the route, not the server, refuses with an error object. */
  serverBodyBytesMax: Number.MAX_SAFE_INTEGER,
  /** Without a byte for this long a connection is closed; longer where a chunk may take longer. */
  connectionIdleSeconds: 30,
  /** The longest that the server can be told. */
  connectionIdleSecondsMax: 255,
  /** So that a robot that waits for a chunk keeps its connection. */
  chunkSecondsMax: 240,
  /** `/readyz` takes a store that is silent for this long to be down. */
  storePingMs: 1_000,
  /** From admission to answer; `TENDON_CHUNK_SECONDS` overrides. */
  chunkSecondsDefault: 10,
  /** Live robot sessions in the table, over all accounts (models without memory). */
  sessionsMax: 65_536,
  /** An ended session's id answers 410 this long, and the ids of its observations are known (contract section 2). */
  sessionEndedMs: 24 * 3_600_000,
  /** An answer can be had again this long after its session has ended (contract section 2). */
  replyKeptMs: 10 * 60_000,
  /** Events that the client of a robot's stream has not taken; beyond it the connection is cut. */
  sseUnsentBytesMax: MiB,
  /** Between two `: processing` comments of a stream. */
  processingMs: 250,
  /** Between two questions to the store whether a key was revoked. */
  keysAskMs: 250,
  /** After this time without an answer no remembered key is believed. */
  keysBelievedMs: 1_000,
  keysKnownMax: 10_000,
  /** Between two notes of when keys were used. */
  keysFlushMs: 10_000,
  /** A hold outlasts the longest run by this; then its node is taken to be dead. */
  holdGraceSeconds: 30,
  /** Between two looks for holds of dead nodes. */
  holdsExpireMs: 5_000,
  /** Between two looks for records that are old enough to be forgotten. */
  forgetMs: 60_000,
  /** From SIGTERM to exit. */
  shutdownMs: 5_000,
  /** Of these, how long running requests may take before the engine is closed under them. */
  drainMs: 3_500,
  /** And how long the last answers may take to leave. */
  flushMs: 500,
  /** Between two looks for sessions that idled too long. */
  sweepMs: 1_000,
  /** A writer waits this long for another process, such as `tendon admin`, to finish its transaction. */
  storeWriterWaitMs: 5_000,
  /** A reader waits only where SQLite recovers a log; it stands on the event loop, so it gives up soon. */
  storeReaderWaitMs: 50,
  /** From a question to the database server to its answer; then the store is down for whoever asked. */
  storeAnswerMs: 1_500,
  /** Of these, how long a connection may take, */
  storeConnectMs: 1_000,
  /** how long the server may work at a statement, or wait for the next one of a transaction: it ends first, and says so, */
  storeStatementMs: 1_200,
  /** and how long a statement may wait for a row that another one has locked. */
  storeLockMs: 300,
  /** For a change of the schema and the check of the ledger, for which nobody waits but their operator. */
  storeLongMs: 3_600_000,
  /** Between two tries. */
  storeBackoffMs: 50,
  /** Of one node to the database server. */
  storeConnectionsMax: 8,
  /** Groups of a robot's writes that are under way at once; holds and settlements have as many each. */
  storeLanes: 3,
  /** Writes of one group. */
  storeGroupMax: 256,
  /** How long the last statements may take when the store is closed. */
  storeCloseMs: 500,
  /** A client command takes a service that is silent for this long to be no tendon service. */
  clientAnswerMs: 60_000,
  /** `tendon login` asks this often where the service names no interval, */
  loginIntervalSecondsDefault: 5,
  /** and takes the service's own within these. */
  loginIntervalSecondsMin: 1,
  loginIntervalSecondsMax: 60,
  /** Its longest pause while the service is away, so that a restart is noticed soon. */
  loginPauseMsMax: 30_000,
  /** JPEG decoders: one per core up to this many. */
  decodeThreadsMax: 8,

  // native engine, fixed at open
  /** Frames between `frame_put` and the end of their run: 16 robots of 3 cameras x 4 frames, and a margin for sockets. */
  framesMax: 256,
  /** Of these, frames of observations that are still to come: nobody whose observation is there waits for them. */
  earlyFramesMax: 128,
  accountEarlyFramesMax: 96,
  /** Runs queued, running or waiting to be read. */
  chunksMax: 128,
  /** Loaded models. */
  modelsMax: 16,
  /** Frames of one observation: 4 cameras x 4 frames. */
  observationFramesMax: 16,
  /** Values of one state vector. */
  stateValuesMax: 64,
  /** Values of one chunk: rows x columns. */
  chunkValuesMax: 2048,
  /** Of a model's frames, one account may hold this many at once: sixteen robots of three cameras still find room. */
  accountFramesMax: 256 - 16 * 3,
  /** And of the runs, over all models. */
  accountChunksMax: 96,
  /** Observations that wait for frame and run slots, over all accounts; the next one is refused. */
  admissionWaitingMax: 2048,
  /** And of one account: a thousand at once all come to their turn, and others still find room to wait. */
  accountWaitingMax: 1536,
  /** What the drill `slow_model` adds. */
  slowModelMs: 2_000,
} as const;

assert(LIMITS.storeConnectMs < LIMITS.storeAnswerMs, "a connection can be made while somebody waits for an answer");
assert(2 * LIMITS.keysAskMs < LIMITS.keysBelievedMs, "one lost question is no reason to believe no key");
assert(LIMITS.framesMax >= 2 * LIMITS.observationFramesMax, "two whole observations fit into the frame slots");
assert(
  LIMITS.accountFramesMax + 3 * LIMITS.observationFramesMax <= LIMITS.framesMax,
  "no account can take all frame slots",
);
assert(
  LIMITS.earlyFramesMax + LIMITS.observationFramesMax <= LIMITS.framesMax,
  "frames that came early leave room for an observation that is there",
);
assert(LIMITS.accountEarlyFramesMax < LIMITS.earlyFramesMax, "no account can take all slots of early frames");
assert(LIMITS.accountSocketsMax < LIMITS.socketsMax, "no account can take all sockets");
assert(
  LIMITS.jpegBytesMax < LIMITS.socketPayloadBytesMax,
  "the route, not the server, refuses a frame that is too large",
);
assert(LIMITS.accountChunksMax < LIMITS.chunksMax, "no account can take all run slots");
assert(LIMITS.accountFramesMax >= LIMITS.observationFramesMax, "every observation fits into an account's share");
assert(LIMITS.accountWaitingMax < LIMITS.admissionWaitingMax, "no account can take all places to wait");
assert(LIMITS.chunkValuesMax >= LIMITS.actionHorizonMax * 20, "the widest chunk of the contract fits");
assert(LIMITS.robotBodyBytesMax > 12 * Math.ceil(LIMITS.jpegBytesMax / 3) * 4, "a body of twelve full frames fits");
assert(
  LIMITS.chunkSecondsMax + 10 < LIMITS.connectionIdleSecondsMax,
  "the server can be told to wait for the slowest chunk",
);
assert(
  LIMITS.clientAnswerMs > 1_000 * LIMITS.chunkSecondsDefault,
  "a client waits longer than a chunk takes by default",
);
assert(
  LIMITS.drainMs + 2 * LIMITS.flushMs < LIMITS.shutdownMs,
  "running requests, last answers and closing fit into the time for shutdown",
);
