/**
 * The bounds of the specification, and of the service's queues, pools and waiting times, with their units. test/limits.test.ts asserts
 * relations between them. A number that only one file uses (a format's width, a tool's time-out) is in that file.
 */
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
  /** Rows of a bundle's chunk: published policies have up to 100. A robot that asks for no number gets them all. */
  chunkRowsMax: 128,
  inferenceStepsMax: 4,
  sessionIdleMs: 60_000,
  deadlineMs: { min: 1, max: 240_000 },
  seedMax: Number.MAX_SAFE_INTEGER,
  // Sign-in and device login (contract section 6)
  /** Body of a page's form or of an OAuth route. */
  formBytesMax: 16 * KiB,
  deviceLoginSeconds: 15 * 60,
  devicePollSeconds: 5,
  /** Name of a machine, which becomes the name of its key. */
  deviceNameCharsMax: 64,
  keyNameCharsMax: 128,
  emailCharsMax: 254,
  passwordCharsMin: 12,
  passwordBytesMax: 1_024,
  signInSeconds: 7 * 86_400,
  /** How long a sign-in needs no password to make a key. */
  signInFreshSeconds: 600,
  linkSeconds: 86_400,
  /** The window in which tries are counted. */
  attemptSeconds: 15 * 60,
  /** Tries to sign in: with one e-mail from one network, with one e-mail, from one network (an IPv4 address or an IPv6 /64), from one IPv6 /48. */
  signInTriesMax: 10,
  emailTriesMax: 100,
  networkTriesMax: 50,
  siteTriesMax: 400,
  /** How long a browser keeps the cookie by which its tries are counted apart. */
  knownBrowserSeconds: 365 * 86_400,
  /** User codes that one account, or one network, may send; a login takes two: to see it and to decide. */
  codeTriesMax: 20,
  codeNetworkTriesMax: 60,
  /** Device logins started from one network. */
  deviceTriesMax: 60,
  /** Accounts made from one network, where sign-up is open. */
  signUpTriesMax: 10,
  /** Passwords in the queue for hashing, tens of milliseconds of a core each: in all, and from one network. */
  passwordsWaitingMax: 16,
  networkPasswordsMax: 2,
  accountKeysMax: 200,
  /** Keys in a list: the valid ones, then the most recently revoked. */
  keysListedMax: 400,
  // WebSocket (specification, Limits; contract section 3)
  socketTextCharsMax: 65_536,
  /** A larger message closes the connection before it is received whole. */
  socketPayloadBytesMax: MiB,
  socketObservationsMax: 8,
  /** Received messages that wait for their observation. */
  socketPendingBytesMax: 16 * MiB,
  socketPendingMessagesMax: 128,
  /** Answers that a client has not read. */
  socketUnsentBytesMax: MiB,
  /** After this silence, without even a pong, a client is disconnected: soon enough that its session can be resumed. */
  socketSilentSeconds: 20,
  /** A connection whose session another one asks for loses it when it answers no ping for this time. */
  socketAnswerMs: 2_000,
  /** Longest wait for the client's side of the closing handshake. */
  socketCloseMs: 2_000,
  /** Time from the first byte of a message to its last. */
  socketMessageMs: 10_000,
  /** Bytes of messages that have begun and not ended, over all sockets. What is not seen of them is 32 KiB a socket at most. */
  halfMessageBytesMax: 96 * MiB,
  socketsMax: 4_096,
  accountSocketsMax: 3_072,
  // Language models (specification, Limits; contract section 4)
  llmBodyBytesMax: 2 * MiB,
  outputTokensMax: 65_536,
  idempotencyKeyCharsMax: 200,
  /** Lifetime of a buffered stream's connection. */
  llmStreamMs: 30 * 60_000,
  /** Between two comments of a stream that has nothing to say. */
  llmKeepaliveMs: 10_000,
  /** How long a request waits for another one of its key. */
  llmKeyWaitMs: 30_000,
  /** For so long a key returns a response that was asked for with `store: false`. */
  llmHiddenSeconds: 86_400,
  // JSON (contract section 1)
  jsonDepthMax: 64,
  jsonValuesMax: 20_000,

  // Bounds of this implementation
  /** Bodies and messages in memory, over all connections. Bun's buffers of incomplete messages come on top: `halfMessageBytesMax`, and 32 KiB a socket. */
  ingressBytesMax: 384 * MiB,
  /** Share of one account: enough for a thousand requests of three large frames. */
  ingressOwnerShare: 0.75,
  /** A body that announces at most this length is read in one piece, and counts as arrived from its beginning. */
  wholeBodyBytesMax: 16 * KiB,
  /**
   * A client that takes fewer bytes of a download in each span is cut off: at least the rate of the slowest upload. The span is long
   * because a connection's buffers, of megabytes, make an even reader look like one that takes them at once and then nothing.
   */
  readMs: 300_000,
  readBytesMin: 3 * MiB,
  /** A larger JSON body is checked on native threads. */
  parsedBodyBytesMax: 64 * KiB,
  /** A longer string of a larger JSON body is set aside: where all texts are read, and where images are. */
  scannedStringBytesMax: { texts: 256, images: 64 },
  /** The same for a string with escapes, which take the parser long, unless the body is small. */
  escapedStringBytesMax: 16,
  escapedBodyBytesMax: MiB,
  /** A longer instruction is refused unread while its model, which knows its own limit, is still being loaded. */
  instructionCharsMax: 128 * KiB,
  /** Time from the first byte of a request to the last of its body. */
  bodyMs: 30_000,
  /** Bun's own limit, higher than any route's: the route refuses the body, with an error object. */
  serverBodyBytesMax: Number.MAX_SAFE_INTEGER,
  /** A connection without traffic is closed after this time, or later if `chunk_seconds` is longer. */
  connectionIdleSeconds: 30,
  /** Open connections, and those of one network that is no trusted proxy, if the configuration does not say. */
  connectionsMaxDefault: 8_192,
  networkConnectionsMaxDefault: 2_048,
  /** Between two looks at the open connections, and at the files of the certificate. */
  connectionsLookMs: 100,
  certificateLookMs: 1_000,
  /** Unread bytes of a connection in the kernel, which keeps up to 1.6 times this: as long as Bun reads 490 KiB at once it does nothing else. */
  receivedBytesMax: 256 * KiB,
  /** How long the former listening socket still accepts what was on its way to it: a slow handshake of TCP. */
  certificateHandoverMs: 3_000,
  /** Largest `chunk_seconds`: within it a waiting robot keeps its connection. */
  chunkSecondsMax: 240,
  /** `/readyz` reports the store as down if it does not answer within this time. */
  storePingMs: 1_000,
  /** Processor time of unpaid work of one account within a minute (contract section 1): `unpaid_seconds`, and its bound. */
  unpaidSecondsDefault: 5,
  unpaidSecondsMax: 3_600,
  /** Named sessions that one account may open within an hour: each is a record that is kept for a day. */
  namedSessionsHourMax: 20_000,
  /** Time from admission to answer, if `chunk_seconds` is not set. */
  chunkSecondsDefault: 10,
  /** `/readyz` shows that the store takes writes by one write in this time, however many ask. */
  storeProbeMs: 1_000,
  /** Time from the end of `chunk_seconds`, when an inference is cancelled, until its replica is taken to hang. */
  runMarginMs: 5_000,
  /** Live robot sessions over all accounts (models without memory). */
  sessionsMax: 65_536,
  /** How long an ended session's id answers 410 and its observation ids are known (contract section 2). */
  sessionEndedMs: 24 * 3_600_000,
  /** How long answers can be replayed after their session has ended (contract section 2). */
  replyKeptMs: 10 * 60_000,
  /** Events that the client of a robot's stream has not taken; beyond it the connection is cut. */
  sseUnsentBytesMax: MiB,
  /** Between two `: processing` comments of a stream. */
  processingMs: 250,
  /** Between two questions to the store for revoked keys; without an answer for `keysBelievedMs` the cache of keys is not used. */
  keysAskMs: 250,
  keysBelievedMs: 1_000,
  keysKnownMax: 10_000,
  /** Keys that are known not to be valid, and for how long: a public id is random, so that none is guessed before its key is made. */
  keysRefusedMax: 10_000,
  keysRefusedMs: 60_000,
  /** Ids of keys that were valid when they were last looked up. */
  keysProvenMax: 65_536,
  /** Unknown keys from one network (an IPv4 address or an IPv6 /64) in `unknownKeysSeconds`; the next one is refused unread. */
  unknownKeysMax: 60,
  unknownKeysSeconds: 60,
  /** Requests to `/oauth/*` from one network in `oauthSeconds`: ten device logins that wait at the usual interval. */
  oauthTriesMax: 120,
  oauthSeconds: 60,
  /** Between two writes of the times at which keys were used. */
  keysFlushMs: 10_000,
  /** A hold expires this long after its deadline; its node must have died. */
  holdGraceSeconds: 30,
  /** The time between two writes of the seen time, which a kill loses: alone on a store, and where processes share one and may differ by it. */
  seenKeepOwnMs: 5_000,
  seenKeepMs: 1_000,
  /** Between two searches: for expired holds, for records that are past their retention, for idle sessions. */
  holdsExpireMs: 5_000,
  forgetMs: 60_000,
  sweepMs: 1_000,
  /** Time from SIGTERM to exit; in it, for running requests before the engine is closed, and for sending the last answers. */
  shutdownMs: 5_000,
  drainMs: 3_500,
  flushMs: 500,
  /** How long SQLite's writer waits for a transaction of another process, such as `tendon admin`. */
  storeWriterWaitMs: 5_000,
  /** How long a reader waits, which happens only while SQLite recovers a log. Short, because it blocks the event loop. */
  storeReaderWaitMs: 50,
  /** Longest wait for an answer of the database server, and in it for a connection; then the operation fails as `StoreDown`. */
  storeAnswerMs: 1_500,
  storeConnectMs: 1_000,
  /** The server's own limits, shorter so that its error arrives in time: for a statement or an idle transaction, and for a row lock. */
  storeStatementMs: 1_200,
  storeLockMs: 300,
  /** The time for migrations and the check of the ledger, which only an operator waits for. */
  storeLongMs: 3_600_000,
  /** Between two tries of a failed statement. */
  storeBackoffMs: 50,
  /** Connections of one node to the database server: for reads, for writes that need not be durable, for durable ones outside of lanes. */
  storeReadConnectionsMax: 4,
  storeQuickConnectionsMax: 2,
  storeDurableConnectionsMax: 6,
  /** Groups of writes in flight at once, each on its connection; holds and settlements have this many each. */
  storeLanes: 3,
  /** Writes of one group. */
  storeGroupMax: 256,
  /** Newest transfers that a node knows to be durable and looks for after it lost a connection. */
  storeMarksMax: 4_096,
  /** Older ones are not looked for: retention sums up entries after a day at the earliest. */
  storeMarkSeconds: 6 * 3_600,
  /** The newest of them are kept in a file for the next process, written at this interval. */
  storeMarksKept: 256,
  storeMarkMs: 1_000,
  /** The node also looks at this interval while no connection is lost: a proxy may have changed the server behind it. */
  storeLookMs: 10_000,
  /** How long closing the store waits for the last statements. */
  storeCloseMs: 500,
  /** How long a client command waits for an answer. */
  clientAnswerMs: 60_000,
  /** Interval at which `tendon login` polls if the service names none, and the bounds of the service's. */
  loginIntervalSecondsDefault: 5,
  loginIntervalSecondsMin: 1,
  loginIntervalSecondsMax: 60,
  /** Its longest pause while the service cannot be reached; short, so that it goes on soon after a restart. */
  loginPauseMsMax: 30_000,
  /** JPEG decoders: one per core up to this many. */
  decodeThreadsMax: 8,

  // Language models
  /** Largest count of tokens that a provider's usage may have. */
  llmTokensMax: 1_000_000_000,
  /** One event of a provider's stream, or a whole answer: the largest request and the longest output fit, in escapes as well. */
  llmLineCharsMax: 8 * MiB,
  /** A whole stream of a provider. */
  llmStreamCharsMax: 512 * MiB,
  /** One response: text, reasoning, arguments, names, ids and encrypted content, and 64 for each item and part. 65,536 long tokens fit. */
  llmOutputCharsMax: MiB,
  /** The wait, after the end of an answer, until its connection is ready for the next call. Later it is closed. */
  llmRestMs: 500,
  /** A provider's error object. */
  llmErrorBytesMax: 64 * KiB,
  llmRetryAfterSecondsMax: 3_600,
  /** Live responses that run at once, over all accounts and of one. */
  llmLiveMax: 4_096,
  accountLlmLiveMax: 3_072,
  /** Background jobs that run at once: on this node, and of one account on all nodes together. */
  llmJobsRunningMax: 64,
  accountLlmJobsRunningMax: 48,
  /** Those of one model among them, on this node and of one account: a provider that hangs leaves the rest to the other models. */
  modelLlmJobsRunningMax: 40,
  /** The pause of a job whose provider was away, doubled each time up to the longest; by chance it lasts up to twice as long. */
  llmJobPauseMs: { first: 1_000, longest: 60_000 },
  /** Background jobs that have not ended, over all accounts and of one. */
  llmJobsMax: 4_096,
  accountLlmJobsMax: 1_024,
  /** Between two looks for jobs that other processes queued; where there are none, for those that a store that was down kept back. */
  llmJobsLookMs: 1_000,
  llmJobsLookOwnMs: 30_000,
  /** Between two signs of life of a process that runs responses, and the silence after which others end what it ran. */
  llmBeatMs: 2_000,
  llmBeatMissedMs: 15_000,
  /** Between two looks at a response that another node runs, and at one of this node, which reports its end by itself. */
  llmPollMs: 500,
  llmPollOwnMs: 10_000,
  /** Streams of background jobs and of stored answers, over all accounts and of one. */
  llmReadersMax: 4_096,
  accountLlmReadersMax: 1_024,
  /** Text of a stream that is sent with one piece. */
  llmPieceCharsMax: 64 * KiB,
  /** After this time a client that takes nothing of its stream is disconnected. */
  llmUnreadSeconds: 60,
  /** What the drill `upstream_slow` adds. */
  slowUpstreamMs: 2_000,

  // Runs of robots (specification, Limits; contract section 7)
  /** A file in one request, or a part. */
  runFileBytesMax: 64 * MiB,
  runJsonBytesMax: MiB,
  runBytesMax: 2048 * MiB,
  runFilesMax: 2_000,
  runUploadsMax: 16,
  /** Measured as JSON without spaces. */
  runMetadataBytesMax: 64 * KiB,
  /** What the record of a run, a file or an unfinished upload counts beside its bytes. */
  runRecordBytes: KiB,
  /** Completed and unfinished. */
  accountRunsMax: 100_000,
  runsAccountBytesMax: 100 * 1024 * MiB,
  runPathBytesMax: 512,
  runPathSegmentsMax: 16,
  runsListedMax: 1_000,
  runsListedDefault: 100,
  /** A part of an upload, except the last one: small, so that a bad link repeats little; above the 5 MiB that S3 asks for. */
  runPartBytes: 16 * MiB,
  runUploadSeconds: 7 * 86_400,
  /** The longest wait for the next bytes of a file, and for all of it: 64 MiB at 10 kB/s. */
  runIdleMs: 60_000,
  runBodyMs: 2 * 3_600_000,
  /** Requests without a file's bytes, and bodies with 1 MiB of memory at most, at once: in all, of one account, on one run. */
  runRequests: { max: 512, accountMax: 64, runMax: 32 },
  runBodies: { max: 512, accountMax: 64, runMax: 32 },
  /** Downloads of files whose bytes pass through this process, at once. */
  runDownloads: { max: 512, accountMax: 64, runMax: 32 },
  /** A body with fewer bytes in each `runIdleMs` is taken to have stopped. */
  runIdleBytesMin: 64 * KiB,
  /** Silence of a connection that uploads; after `runIdleMs` the route itself says so. */
  runConnectionIdleSeconds: 120,
  /** The time that bytes stay after their file is deleted: a download that has begun reads them to the end. */
  runGoneSeconds: 60,
  /** After this time the unfinished work of another process is taken to be left. */
  runLeftSeconds: 3 * 3_600,
  /** Bytes without a record stay this long after they are found: a newer copy of the database may name them. */
  runUnnamedSeconds: 3 * 86_400,
  /** The time after which the store of runs begins its next generation although it removes nothing (src/runs/ownership.ts). */
  runGenerationSeconds: 60,
  /** Between two looks for bytes to be removed, and for the unfinished work of ended processes. */
  runSweepMs: 15_000,
  /** Between two comparisons of all blobs with their records, and before the first, so that a daily restart does not prevent it. */
  runCompareMs: 6 * 3_600_000,
  runCompareFirstMs: 10 * 60_000,
  /** Blobs that one turn fails to remove before it ends: a storage that is down answers each after minutes. */
  runStuckMax: 8,
  /**
   * Blobs without a record that are removed, as crashes leave them. More of them, and more than this share of all, have lost
   * their records, as with an old copy of the database: a person must look.
   */
  runUnnamedMax: 100,
  runUnnamedShare: 0.1,
  runMeterMs: 2_000,

  // Native engine, fixed when it is opened
  /** Frames between `frame_put` and the end of their inference: 16 robots of 3 cameras x 4 frames, and a margin for sockets. */
  framesMax: 256,
  /** Frames among them that arrive before their observation: in all, and of one account. The rest is left for complete observations. */
  earlyFramesMax: 128,
  accountEarlyFramesMax: 96,
  /** Inferences that are queued, run or wait to be read. */
  chunksMax: 128,
  /** Frames of one observation: 4 cameras x 4 frames. */
  observationFramesMax: 16,
  /** Values of one state vector. */
  stateValuesMax: 64,
  /** Values of one chunk: rows x columns. */
  chunkValuesMax: 2048,
  /** Frames of one account: leaves room for sixteen robots with three cameras. */
  accountFramesMax: 256 - 16 * 3,
  /** Inferences of one account, over all models. */
  accountChunksMax: 96,
  /** Observations that wait for permits, over all accounts and of one, which leaves room for others; the next one is refused. */
  admissionWaitingMax: 2048,
  accountWaitingMax: 1536,
  /** What the drill `slow_model` adds. */
  slowModelMs: 2_000,
} as const;
