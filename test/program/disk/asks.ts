/** What a client asks of a service on a failing disk: each can be asked again, and says then what it said first. */
import { frameMessage } from "../../../src/client/episode-messages.ts";
import { EpisodeSocket } from "../../../src/client/episode-socket.ts";
import { Problem } from "../../../src/std/problem.ts";
import { ask as askModel, polled } from "../llm-clients.ts";
import { post, type Target } from "../payers.ts";
import { requestOf } from "../program.ts";

/** What came of it. */
export interface Reply {
  /** 0: the connection broke; 200: it was done. */
  readonly status: number;
  readonly code: string | undefined;
  /** What a repeat must say again. */
  readonly said: string;
  readonly replayed: boolean;
  /** The id of the charge that was made for it. */
  readonly chargeId?: string;
}

export interface Ask {
  readonly name: string;
  /** It is charged for when it is done. */
  readonly paid: boolean;
  /** The file of a run that it keeps. */
  readonly path?: string;
  /** Whether asking it again marks the answer as a repeat. */
  readonly marked: boolean;
  send(target: Target): Promise<Reply>;
  /** `send` again, or another way to the same answer. */
  again(target: Target): Promise<Reply>;
}

const MODEL = "vendorB/molmoact2:yam";
const INSTRUCTION = "pick up the red block";
const STATE = { joint_position: Array(12).fill(0.1), gripper_position: [0.5, 1] };

/** An observation over HTTP; with a session, at its step. */
export function chunk(frames: readonly Uint8Array[], observationId: string, session?: string, step = 0): Ask {
  const within = session === undefined ? {} : { session_id: session, expected_step: step };
  const body = requestOf(frames, { observation_id: observationId, ...within });
  const send = (target: Target) => posted(target, body);
  return { name: `chunk ${observationId}`, paid: true, marked: true, send, again: send };
}

async function posted(target: Target, body: string): Promise<Reply> {
  const { status, code, text, replayed, generationId } = await post(target, body);
  return { status, code, said: text, replayed, ...(generationId === null ? {} : { chargeId: generationId }) };
}

/** The first observation of a session on a socket; it is repeated over HTTP. */
export function socketChunk(frames: readonly Uint8Array[], observationId: string): Ask {
  const session_id = `socket-${observationId}`;
  const body = requestOf(frames, { observation_id: observationId, session_id });
  return {
    ...{ name: `socket chunk ${observationId}`, paid: true, marked: true },
    send: async ({ url, key }) => {
      const socket = await EpisodeSocket.connect({ url, apiKey: key });
      if (socket instanceof Problem) return refused(socket);
      const opening = { model: MODEL, instruction: INSTRUCTION, sessionId: session_id, format: "json" } as const;
      const opened = await socket.open(opening);
      for (const [camera, jpeg] of frames.entries()) socket.frame(frameMessage(camera, jpeg));
      const answer =
        opened instanceof Problem
          ? opened
          : await socket.observe({ robot_state: STATE, observation_id: observationId });
      await socket.leave();
      return answer instanceof Problem ? refused(answer) : said(JSON.stringify(answer));
    },
    again: async (target) => {
      const reply = await posted(target, body);
      if (reply.status !== 200) return reply;
      const content = (JSON.parse(reply.said) as { choices: [{ message: { content: string } }] }).choices[0];
      return { ...reply, said: JSON.stringify(JSON.parse(content.message.content)) };
    },
  };
}

function refused({ message }: Problem): Reply {
  const code = /\b([a-z]+_[a-z_]+): /.exec(message)?.[1];
  return { status: code === undefined ? 0 : 503, code, said: message, replayed: false };
}

/** A chunk of a socket without what belongs to the message alone. */
function said(text: string): Reply {
  return { status: 200, code: undefined, said: text, replayed: false };
}

export function response(key: string): Ask {
  const send = async (target: Target) => {
    const { status, code, text, replayed, id } = await askModel(target, "live", key);
    return { status, code, said: text, replayed, ...(id === undefined ? {} : { chargeId: id }) };
  };
  return { name: `response ${key}`, paid: true, marked: true, send, again: send };
}

/** A response in the background: what it says is its end. */
export function job(key: string): Ask {
  const send = async (target: Target) => {
    const { status, code, text, replayed, id } = await askModel(target, "job", key);
    const end = status === 200 ? await polled(target, id ?? "") : undefined;
    const done = status !== 200 || end !== undefined;
    const reply = { status: done ? status : 0, code, said: end ?? text, replayed };
    return { ...reply, ...(id === undefined ? {} : { chargeId: id }) };
  };
  return { name: `job ${key}`, paid: true, marked: true, send, again: send };
}

/** A response in the background as far as its acceptance: what it says is its id. */
export function accepted(key: string): Ask {
  const send = async (target: Target) => {
    const { status, code, replayed, id, text } = await askModel(target, "job", key);
    return { status, code, said: status === 200 ? (id ?? "") : text, replayed };
  };
  return { name: `accepted ${key}`, paid: false, marked: true, send, again: send };
}

async function fetched(target: Target, method: string, path: string, body?: string): Promise<Reply> {
  try {
    const init = {
      method,
      headers: { authorization: `Bearer ${target.key}` },
      ...(body === undefined ? {} : { body }),
    };
    const answered = await fetch(`${target.url}/v1/robot/runs/${path}`, init);
    const text = await answered.text();
    const ok = answered.status < 300;
    const code = ok ? undefined : (JSON.parse(text) as { error: { code: string } }).error.code;
    return { status: ok ? 200 : answered.status, code, said: text, replayed: false };
  } catch {
    return { status: 0, code: undefined, said: "", replayed: false };
  }
}

const UNPAID = { paid: false, marked: false };

/** A file of a run is read where the run is complete, and stored again where it is not. */
function read(run: string, path: string, store: Ask["send"]): Ask["again"] {
  return async (target) => {
    const found = await fetched(target, "GET", `${run}/files/${path}`);
    return found.status === 404 ? await store(target) : found;
  };
}

/** A file of a run in one piece. */
export function file(run: string, path: string, text: string): Ask {
  const name = `file ${run}/${path}`;
  const send = async (target: Target) => {
    const stored = await fetched(target, "PUT", `${run}/files/${path}`, text);
    return stored.status === 200 ? { ...stored, said: text } : stored;
  };
  return { ...UNPAID, name, path, send, again: read(run, path, send) };
}

/** A file of a run as an upload of one part. */
export function upload(run: string, path: string, text: string): Ask {
  const place = `${run}/uploads/${path}`;
  const send = async (target: Target) => {
    const begun = await fetched(target, "POST", place, JSON.stringify({ size: text.length }));
    // The answer to an earlier one was no success: it goes on where it is.
    const open = begun.code === "upload_in_progress" ? await fetched(target, "GET", place) : begun;
    if (open.status !== 200) return open;
    const [, upload_id] = /"upload_id":"(\w+)"/.exec(open.said) ?? [];
    if (upload_id === undefined) return begun;
    const part = await fetched(target, "PUT", `${place}?upload_id=${upload_id}&part=1`, text);
    // "The upload is being finished": only the finishing request is to be repeated.
    if (part.status !== 200 && part.code !== "upload_in_progress") return part;
    const end = await fetched(target, "POST", `${place}?upload_id=${upload_id}`, "{}");
    return end.status === 200 ? { ...end, said: text } : end;
  };
  return { ...UNPAID, name: `upload ${run}/${path}`, path, send, again: read(run, path, send) };
}

/** The end of a run, whose repeat reads its files as well. */
export function complete(run: string, files: Readonly<Record<string, string>>): Ask {
  const listed = Object.entries(files).map(([path, { length }]) => ({ path, size: length }));
  const send = (target: Target) => fetched(target, "POST", `${run}/complete`, JSON.stringify({ files: listed }));
  return {
    ...{ ...UNPAID, name: `complete ${run}`, send },
    again: async (target) => {
      for (const [path, text] of Object.entries(files)) {
        const { said } = await fetched(target, "GET", `${run}/files/${path}`);
        if (said !== text) return { status: 500, code: undefined, said: `${path} reads ${said}`, replayed: false };
      }
      return await send(target);
    },
  };
}
