/** `tendon ask`: a question to a language model of a running service, its answer printed as it comes. */
import { askInBackground, askLive } from "../client/ask.ts";
import { NoAnswer, type Service } from "../client/http.ts";
import { answerText, type Question, RESPONSES_ROUTE, type ResponseObject, shortcoming } from "../client/responses.ts";
import { signedIn } from "../client/sign-in.ts";
import { LIMITS } from "../limits.ts";
import { systemClock } from "../std/clock.ts";
import { makeId } from "../std/ids.ts";
import { printableLines } from "../std/printable.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { BASE_URL_FLAG, type Command, type CommandLine, usageProblem } from "./frame/command.ts";
import { printJson, printPiece } from "./frame/print.ts";
import { wholeNumber } from "./frame/values.ts";

const LIVE = "llm-a-5.3:superfast";
const BACKGROUND = "llm-a-5.3:async";
const BACKGROUND_IDS = /:async$/;
/** A shell shows this for a command that Ctrl-C ended. */
const LEFT = 130;

export const ask: Command = {
  name: "ask",
  summary: "Ask a language model of a running service and print its answer as it comes.",
  positionals: "TEXT",
  flags: {
    model: { value: "ID", about: `Language model (default ${LIVE}, with --async ${BACKGROUND}).` },
    async: { about: "Ask a background model, and wait for its answer." },
    instructions: { value: "TEXT", about: "Instructions that the model must follow." },
    "max-output-tokens": {
      value: "N",
      about: `Longest answer, thoughts included, 1 to ${LIMITS.outputTokensMax} (default: the model's).`,
    },
    "base-url": BASE_URL_FLAG,
    json: { about: "Print the whole response as one JSON object, once it has ended." },
  },
  async run(given) {
    const question = questionOf(given);
    if (question instanceof Problem) return question;
    const service = await signedIn(given.text("base-url"));
    if (service instanceof Problem) return service;
    const left = new AbortController();
    // Once: a second Ctrl-C ends the command at once.
    process.once("SIGINT", () => left.abort());
    const asked = new Exchange(service, question, given.on("json"), left.signal);
    const response = await asked.answer();
    if (left.signal.aborted) return asked.leaving();
    if (response instanceof Problem) return asked.ended(response);
    if (given.on("json")) await printJson(response);
    const wanting = shortcoming(response);
    return wanting === undefined ? EXIT.done : new Problem(wanting);
  },
};

function questionOf(given: CommandLine): Question | Problem {
  const input = given.word(0);
  if (input.trim() === "") return usageProblem(ask, "the question is empty");
  const model = given.text("model") ?? (given.on("async") ? BACKGROUND : LIVE);
  if (given.on("async") && !BACKGROUND_IDS.test(model)) {
    return usageProblem(ask, `--async is for background models, whose ids end in :async, not for '${model}'`);
  }
  const maxOutputTokens = wholeNumber(ask, given, "max-output-tokens", [1, LIMITS.outputTokensMax]);
  if (maxOutputTokens instanceof Problem) return maxOutputTokens;
  return { model, input, instructions: given.text("instructions"), maxOutputTokens };
}

/** One question on its way. */
class Exchange {
  private readonly key = makeId("key_", systemClock);
  private readonly screen = new Screen(printPiece, process.stdout.isTTY);
  private id: string | undefined;

  constructor(
    private readonly service: Service,
    private readonly question: Question,
    private readonly json: boolean,
    private readonly signal: AbortSignal,
  ) {}

  async answer(): Promise<ResponseObject | Problem> {
    try {
      return await (BACKGROUND_IDS.test(this.question.model) ? this.background() : this.live());
    } finally {
      await this.screen.end();
    }
  }

  /** The service goes on: what it makes of the question can be had later. */
  leaving(): Problem {
    return new Problem(`left; the service still answers ${this.later()}`, LEFT);
  }

  /** The service may have an answer although none came. */
  ended(problem: Problem): Problem {
    if (!(problem instanceof NoAnswer) || this.id === undefined) return problem;
    return new Problem(`${problem.message}; the service may still answer ${this.later()}`, problem.exit);
  }

  private later(): string {
    const { service, id, key } = this;
    if (id === undefined) return `the request, whose Idempotency-Key is ${key}`;
    const url = `${service.url}${RESPONSES_ROUTE}/${id}`;
    return `${id}, and keeps it: curl -H "Authorization: Bearer $(tendon token)" ${url}`;
  }

  private async live(): Promise<ResponseObject | Problem> {
    const { service, question, key, signal } = this;
    const text = (piece: string) => (this.json ? Promise.resolve() : this.screen.piece(piece));
    return await askLive(service, question, { begun: this.begun, text }, { key, signal });
  }

  private async background(): Promise<ResponseObject | Problem> {
    const { service, question, key, signal } = this;
    const response = await askInBackground(service, question, this.begun, { key, signal });
    if (!(response instanceof Problem || signal.aborted || this.json)) await this.screen.piece(answerText(response));
    return response;
  }

  private readonly begun = (id: string): void => {
    this.id = id;
  };
}

/** Prints an answer piece by piece. */
export class Screen {
  /** The first half of a character whose second half is yet to come. */
  private half = "";
  private last = "\n";

  constructor(
    private readonly print: (text: string) => Promise<void>,
    /** The answer goes to a terminal, which would obey control characters. */
    private readonly guarded: boolean,
  ) {}

  async piece(text: string): Promise<void> {
    const whole = this.half + text;
    this.half = /[\ud800-\udbff]$/.exec(whole)?.[0] ?? "";
    await this.put(whole.slice(0, whole.length - this.half.length));
  }

  /** Nothing more comes: the next text of a terminal begins on a new line. */
  async end(): Promise<void> {
    await this.put(this.half);
    this.half = "";
    if (this.last !== "\n") await this.put("\n");
  }

  private async put(text: string): Promise<void> {
    if (text === "") return;
    this.last = text.slice(-1);
    await this.print(this.guarded ? printableLines(text) : text);
  }
}
