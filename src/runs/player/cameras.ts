/** The cameras of a run: videos that follow the run's time, and frames that are shown one by one. */
import type { Observation } from "./log-lines.ts";
import { make } from "./page.ts";
import { fileAddress } from "./words.ts";

/** Above this difference a video is set to the run's time; below it the video plays a little faster or slower. */
const JUMP_SECONDS = 0.3;
const DRIFT_SECONDS = 0.02;
/** The largest change of a video's speed. */
const PACE_SHARE = 0.25;
/** A time at the border of two frames must show the later one in spite of rounding. */
const INTO_FRAME_SECONDS = 0.001;

/** The videos of a run. The longest one is the clock while they play. */
export class Videos {
  #wanted = 0;
  readonly #asked = new Map<HTMLVideoElement, number>();

  constructor(private readonly videos: readonly HTMLVideoElement[]) {
    for (const video of videos) {
      video.controls = false;
      video.muted = true;
      // The run's time may have moved while the seek ran.
      video.addEventListener("seeked", () => {
        if (video.paused && this.#asked.get(video) !== this.#timeIn(video)) this.#seek(video);
      });
      video.addEventListener("loadedmetadata", () => this.#seek(video));
    }
  }

  /** Seconds; 0 without a video. */
  get length(): number {
    return Math.max(0, ...this.videos.map(lengthOf));
  }

  /** The time of the longest video; undefined if it does not play. */
  get time(): number | undefined {
    const master = this.#master();
    return master === undefined || master.paused || master.ended ? undefined : master.currentTime;
  }

  get waits(): boolean {
    const master = this.#master();
    return master !== undefined && !master.ended && master.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
  }

  show(t: number): void {
    this.#wanted = t;
    for (const video of this.videos) if (!video.seeking) this.#seek(video);
  }

  play(t: number, speed: number): void {
    this.show(t);
    for (const video of this.videos) {
      video.playbackRate = speed;
      // A browser may refuse, for example to save power. The run's own clock goes on, and `follow` seeks.
      if (t < lengthOf(video)) video.play().catch(() => {});
    }
  }

  pause(t: number): void {
    for (const video of this.videos) video.pause();
    this.show(t);
  }

  /** Keeps the other videos at the time of the longest one. */
  follow(t: number, speed: number): void {
    this.#wanted = t;
    const master = this.#master();
    for (const video of this.videos) {
      if (video === master || video.seeking || video.ended || t >= lengthOf(video)) continue;
      const drift = video.currentTime - t;
      if (Math.abs(drift) > JUMP_SECONDS) this.#seek(video);
      const pace = Math.max(-PACE_SHARE, Math.min(PACE_SHARE, -drift));
      video.playbackRate = Math.abs(drift) > DRIFT_SECONDS ? speed * (1 + pace) : speed;
    }
  }

  #master(): HTMLVideoElement | undefined {
    const playable = this.videos.filter((video) => video.error === null && lengthOf(video) > 0);
    return playable.toSorted((a, b) => lengthOf(b) - lengthOf(a))[0];
  }

  #timeIn(video: HTMLVideoElement): number {
    return Math.min(this.#wanted + INTO_FRAME_SECONDS, lengthOf(video));
  }

  #seek(video: HTMLVideoElement): void {
    if (video.readyState < HTMLMediaElement.HAVE_METADATA) return;
    const time = this.#timeIn(video);
    this.#asked.set(video, time);
    video.currentTime = time;
  }
}

function lengthOf(video: HTMLVideoElement): number {
  return Number.isFinite(video.duration) ? video.duration : 0;
}

/** The number of decoded frames that are kept, of all cameras together. */
const IMAGES_KEPT = 48;

/** Cameras without a video show the newest frame of the observation under the cursor. */
export class Frames {
  readonly #cameras: { readonly name: string; readonly image: HTMLImageElement }[] = [];
  readonly #ahead = new Map<string, HTMLImageElement>();

  constructor(private readonly base: string) {}

  add(name: string): HTMLElement {
    const image = make("img");
    image.alt = `Frame of camera ${name}`;
    this.#cameras.push({ name, image });
    return make("figure", "camera", image, make("figcaption", undefined, name));
  }

  get any(): boolean {
    return this.#cameras.length > 0;
  }

  show(one: Observation, neighbours: readonly (Observation | undefined)[]): void {
    for (const { name, image } of this.#cameras) {
      const address = this.#address(one, name);
      if (address === undefined) image.removeAttribute("src");
      else if (image.getAttribute("src") !== address) image.src = address;
      for (const other of neighbours) if (other !== undefined) this.#load(this.#address(other, name));
    }
  }

  #address({ frames }: Observation, camera: string): string | undefined {
    const path = frames.get(camera)?.at(-1);
    return path === undefined ? undefined : fileAddress(this.base, path);
  }

  #load(address: string | undefined): void {
    if (address === undefined || this.#ahead.has(address)) return;
    const image = new Image();
    image.src = address;
    this.#ahead.set(address, image);
    for (const old of this.#ahead.keys()) {
      if (this.#ahead.size <= IMAGES_KEPT) break;
      this.#ahead.delete(old);
    }
  }
}
