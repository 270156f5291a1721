/** How the bounds of the service relate to each other: a change of one of them must not break what two of them promise together. */
import { expect, test } from "bun:test";
import { LIMITS } from "../src/limits.ts";
import { isBackground, LLM_IDS } from "../src/llm/models.ts";

const { framesMax, observationFramesMax } = LIMITS;
const [KiB, MiB] = [1024, 1024 * 1024];

test.each([
  ["connecting takes less time than the wait for an answer", LIMITS.storeConnectMs < LIMITS.storeAnswerMs],
  ["no node ends what another one still holds", 5_000 + LIMITS.seenKeepMs < 1_000 * LIMITS.holdGraceSeconds],
  ["one lost question does not disable the cache of keys", 2 * LIMITS.keysAskMs < LIMITS.keysBelievedMs],
  ["no account can take all frame slots", LIMITS.accountFramesMax + 3 * observationFramesMax <= framesMax],
  ["early frames leave room for a whole observation", LIMITS.earlyFramesMax + observationFramesMax <= framesMax],
  ["two whole observations fit into the frame slots", framesMax >= 2 * observationFramesMax],
  ["no account can take all slots of early frames", LIMITS.accountEarlyFramesMax < LIMITS.earlyFramesMax],
  [
    "incomplete messages that a look finds take less than 256 MiB, however they are built",
    LIMITS.halfMessageBytesMax + LIMITS.socketsMax * 32 * KiB < 256 * MiB,
  ],
  ["no account can take all sockets", LIMITS.accountSocketsMax < LIMITS.socketsMax],
  ["the route, not the server, refuses a large frame", LIMITS.jpegBytesMax < LIMITS.socketPayloadBytesMax],
  ["no account can take all run slots", LIMITS.accountChunksMax < LIMITS.chunksMax],
  ["every observation fits into an account's share", LIMITS.accountFramesMax >= LIMITS.observationFramesMax],
  ["no account can take all places to wait", LIMITS.accountWaitingMax < LIMITS.admissionWaitingMax],
  ["the longest chunk fits at any width that is published", LIMITS.chunkValuesMax >= LIMITS.chunkRowsMax * 16],
  ["a body of twelve full frames fits", LIMITS.robotBodyBytesMax > 12 * Math.ceil(LIMITS.jpegBytesMax / 3) * 4],
  ["no account can take all live responses", LIMITS.accountLlmLiveMax < LIMITS.llmLiveMax],
  ["no account can take all places of running jobs", LIMITS.accountLlmJobsRunningMax < LIMITS.llmJobsRunningMax],
  [
    "models that hang leave places for the last one, on a node and of an account",
    (LLM_IDS.filter(isBackground).length - 1) * LIMITS.modelLlmJobsRunningMax <
      Math.min(LIMITS.llmJobsRunningMax, LIMITS.accountLlmJobsRunningMax),
  ],
  ["no account can take all places of jobs", LIMITS.accountLlmJobsMax < LIMITS.llmJobsMax],
  ["the longest output, in escapes, fits into one event", LIMITS.llmLineCharsMax > 6 * LIMITS.llmOutputCharsMax],
  ["some lost signs of life do not end a process' responses", 4 * LIMITS.llmBeatMs < LIMITS.llmBeatMissedMs],
  ["a stream that is read is not taken to be unread", LIMITS.llmKeepaliveMs < 1_000 * LIMITS.llmUnreadSeconds],
  ["many accounts can read and delete runs", 8 * LIMITS.runRequests.accountMax <= LIMITS.runRequests.max],
  ["many accounts can upload", 8 * LIMITS.runBodies.accountMax <= LIMITS.runBodies.max],
  ["many accounts can download", 8 * LIMITS.runDownloads.accountMax <= LIMITS.runDownloads.max],
  [
    "a download may be as slow as the slowest upload, and no slower",
    LIMITS.readBytesMin / LIMITS.readMs >= LIMITS.runFileBytesMax / LIMITS.runBodyMs,
  ],
  ["a silent download ends before its span does", 2_000 * LIMITS.runConnectionIdleSeconds <= LIMITS.readMs],
  ["an upload that pauses is answered", LIMITS.runIdleMs < 1_000 * LIMITS.runConnectionIdleSeconds],
  ["a file that still comes is not taken to be left", 1_000 * LIMITS.runLeftSeconds > LIMITS.runBodyMs],
  ["a part fits into one request", LIMITS.runPartBytes <= LIMITS.runFileBytesMax],
  ["a robot waits no longer than a service may", LIMITS.deadlineMs.max === 1_000 * LIMITS.chunkSecondsMax],
  ["Bun, whose longest idle time is 255 s, waits for the slowest chunk", LIMITS.chunkSecondsMax + 10 < 255],
  ["a client waits for a chunk of the default time", LIMITS.clientAnswerMs > 1_000 * LIMITS.chunkSecondsDefault],
  ["draining, last answers and closing fit into shutdown", LIMITS.drainMs + 2 * LIMITS.flushMs < LIMITS.shutdownMs],
])("%s", (_, holds) => {
  expect(holds).toBe(true);
});
