/** The player of a run, which is the only script of the product. The HTML of the page (src/runs/views/run.ts) names what to play. */
import { Frames, Videos } from "./cameras.ts";
import { type Head, LogProblem, type Observation } from "./log-lines.ts";
import { LogView } from "./log-view.ts";
import { frameSecondsOf } from "./mp4-pace.ts";
import { find, make } from "./page.ts";
import { rangesOf } from "./paged-file.ts";
import { RunLog } from "./run-log.ts";
import { Transport } from "./transport.ts";

/** The duration of a frame if the video does not state it. */
const FRAME_SECONDS = 1 / 30;
/** A tolerance, because rounding must not skip a frame or repeat one. */
const HAIR_SECONDS = 1e-4;

const root = find("player", HTMLElement);
const cameras = find("cameras", HTMLElement);
const files = root.dataset.files ?? "";
const figures = [...cameras.querySelectorAll("figure")];
const elements = figures.flatMap((figure) => [...figure.querySelectorAll("video")]);
const videos = new Videos(elements);
const frames = new Frames(files);
let log: RunLog | undefined;
let view: LogView | undefined;

const transport = new Transport({
  moved: (t, playing) => {
    if (playing) videos.follow(t, speed());
    else videos.show(t);
    view?.show(t, playing);
  },
  started: (t, rate) => videos.play(t, rate),
  stopped: (t) => videos.pause(t),
  master: () => ({ time: videos.time, waits: videos.waits }),
  step,
});

function speed(): number {
  return Number(find("speed", HTMLSelectElement).value);
}

function say(text: string): void {
  const element = find("log-problem", HTMLElement);
  element.textContent = text;
  element.hidden = false;
}

/** The frame duration of the first video that states it. */
let frameSeconds: Promise<number> | undefined;

async function paceOf(): Promise<number> {
  for (const video of elements) {
    const size = Number(video.dataset.size);
    const found = await frameSecondsOf(size, rangesOf(video.currentSrc)).catch(() => undefined);
    if (found !== undefined) return found;
  }
  return FRAME_SECONDS;
}

/** A step is a frame of a video; without videos it is an observation. */
async function step(t: number, by: 1 | -1): Promise<number> {
  if (videos.length > 0) {
    frameSeconds ??= paceOf();
    const seconds = await frameSeconds;
    return (Math.floor((t + HAIR_SECONDS) / seconds) + by) * seconds;
  }
  const here = await log?.at(t);
  const next = here && (await (by > 0 ? log?.after(here) : log?.before(here)));
  return next?.t ?? t;
}

function lengthen(seconds: number): void {
  transport.lengthen(seconds);
  view?.lengthen(transport.length);
}

/** Orders and names the videos as the log does, and adds the cameras that have frames instead. */
function arrange(head: Head): void {
  const ordered = head.cameras.map(({ name, video }) => {
    if (video === undefined) return frames.add(name);
    const figure = figures.find((one) => one.dataset.path === video);
    if (figure === undefined)
      return make(
        "figure",
        "camera",
        make("p", "absent", "The run has no such video."),
        make("figcaption", undefined, name),
      );
    figure.querySelector("figcaption")?.replaceChildren(name);
    figure.querySelector("video")?.setAttribute("aria-label", `Camera ${name}`);
    return figure;
  });
  cameras.prepend(...ordered);
}

function describe({ instruction, model }: Head): void {
  const parts = [instruction === undefined ? "" : `“${instruction}”`, model ?? ""].filter((part) => part !== "");
  find("about", HTMLElement).textContent = parts.join(" · ");
}

/** The end of the run as the log states it. */
function endOf(last: Observation | undefined, dt: number): number {
  if (last === undefined) return 0;
  const rows = last.chunk === undefined ? 0 : last.chunk.start + last.chunk.actions.length * dt;
  return elements.length > 0 ? last.t : Math.max(last.t, rows);
}

async function openLog(address: string, size: number): Promise<void> {
  try {
    log = await RunLog.open(size, rangesOf(address));
    describe(log.head);
    arrange(log.head);
    const last = await log.last();
    if (last === undefined) throw new LogProblem("it has no observation");
    view = new LogView(log, frames, (t) => transport.seek(t), say);
    lengthen(Math.max(transport.length, endOf(last, log.head.dt)));
    view.show(transport.t, false);
  } catch (error) {
    if (!(error instanceof LogProblem)) throw error;
    say(`The log cannot be read: ${error.message}.`);
  }
}

for (const video of elements) {
  video.addEventListener("loadedmetadata", () => lengthen(videos.length));
  video.addEventListener("error", () => {
    video.after(make("p", "absent", "This browser cannot play the video."));
    video.hidden = true;
  });
}
lengthen(videos.length);
const { log: address, logSize } = root.dataset;
if (address !== undefined) await openLog(address, Number(logSize));
// The first arrow key must not wait for it.
if (elements.length > 0) frameSeconds = paceOf();
root.dataset.ready = "";
