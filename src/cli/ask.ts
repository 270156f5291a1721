/** `tendon ask`: a question to a language model of a running service, its answer printed as it comes. */
import { type Asking, askInBackground, askLive, type Question, RESPONSES_ROUTE, shortcoming } from "../client/ask.ts";
import { ErrorReply, NoAnswer, type Service } from "../client/http.ts";
import { signedIn } from "../client/sign-in.ts";
import { systemClock } from "../std/clock.ts";
import { makeId } from "../std/ids.ts";
import { printableLines } from "../std/printable.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { BASE_URL_FLAG, type Command, type CommandLine, usageProblem } from "./frame/command.ts";
import { printJson, printNote, printPiece } from "./frame/print.ts";

const LIVE = "llm-a-5.3:superfast";
const BACKGROUND = "llm-a-5.3:async";
/** A shell shows this for a command that Ctrl-C ended. */
const LEFT = 130;

export const ask: Command = {
  name: "ask",
  summary: "Ask a language model of a running service and print its answer as it comes.",
  positionals: "TEXT",
  flags: {
    model: { value: "ID", about: `Language model (default ${LIVE}, with --async ${BACKGROUND}).` },
    async: { about: "Ask a background model, and wait for its answer." },
    "base-url": BASE_URL_FLAG,
    json: { about: "Print the whole response as one JSON object, once it has ended." },
  },
  async run(given) {
    const question = questionOf(given);
    if (question instanceof Problem) return question;
    const service = await signedIn(given.text("base-url"));
    if (service instanceof Problem) return service;
    const answer = new Answer(service, given.on("json"));
    process.once("SIGINT", () => answer.leave());
    const response = await (isBackground(question.model) ? askInBackground : askLive)(service, question, answer);
    await answer.end();
    if (response instanceof Problem) return answer.ended(response);
    if (given.on("json")) await printJson(response);
    return shortcoming(response) ?? EXIT.done;
  },
};

function isBackground(model: string): boolean {
  return model.endsWith(":async");
}

function questionOf(given: CommandLine): Question | Problem {
  const input = given.word(0);
  if (input.trim() === "") return usageProblem(ask, "the question is empty");
  const model = given.text("model") ?? (given.on("async") ? BACKGROUND : LIVE);
  if (given.on("async") && !isBackground(model)) {
    return usageProblem(ask, `--async is for background models, whose ids end in :async, not for '${model}'`);
  }
  return { model, input };
}

/** The answer on the terminal. */
class Answer implements Asking {
  readonly key = makeId("key_", systemClock);
  private id: string | undefined;
  private last = "\n";

  constructor(
    private readonly service: Service,
    /** The response is printed as a whole, not its pieces. */
    private readonly isWhole: boolean,
  ) {}

  readonly begun = (id: string): void => {
    this.id = id;
  };

  readonly text = async (piece: string): Promise<void> => {
    if (this.isWhole || piece === "") return;
    this.last = piece.slice(-1);
    // A terminal would obey control characters.
    await printPiece(process.stdout.isTTY ? printableLines(piece) : piece);
  };

  /** The next text of a terminal begins on a new line. */
  async end(): Promise<void> {
    if (this.last !== "\n") await this.text("\n");
  }

  async leave(): Promise<void> {
    await this.end();
    await printNote(`tendon ask: left; the service still answers ${this.later()}`);
    process.exit(LEFT);
  }

  /** Says how to get an answer that the service may have although none came. */
  ended(problem: Problem): Problem {
    const isUnknown =
      problem instanceof ErrorReply
        ? this.id !== undefined || problem.code === "submission_outcome_unknown"
        : problem instanceof NoAnswer && (this.id !== undefined || !problem.nobodyListens);
    if (!isUnknown) return problem;
    return new Problem(`${problem.message}; the service may still answer ${this.later()}`, problem.exit);
  }

  private later(): string {
    if (this.id === undefined) return `the request, whose Idempotency-Key is ${this.key}`;
    const url = `${this.service.url}${RESPONSES_ROUTE}/${this.id}`;
    return `${this.id}, and keeps it: curl -H "Authorization: Bearer $(tendon token)" ${url}`;
  }
}
