/** The player's page in Chromium. What runs inside of the page is text: it belongs to another world than the test. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import type { ShownRow } from "../views/episode.ts";

/** Mean differences of two pictures' bytes: of one frame through two decoders, and of two frames. */
export const NEAR = 6;
export const FAR = 12;

export function distance(one: Uint8Array, other: Uint8Array): number {
  expect(one.length).toBe(other.length);
  let sum = 0;
  for (let at = 0; at < one.length; at += 1) sum += Math.abs((one[at] ?? 0) - (other[at] ?? 0));
  return sum / one.length;
}

/** The videos have arrived, and the row is the one of this time. */
const SETTLED = `(() => {
  const row = document.querySelector("#readout");
  // A scrubber rounds in the last digit.
  const off = Math.abs(Number(row.dataset.t) - Number(document.querySelector("#scrubber").value));
  const there = row.closest("section").hidden || off < 1e-6;
  const arrived = (video) => !video.paused || (!video.seeking && video.readyState >= 2);
  return there && [...document.querySelectorAll("video")].every(arrived);
})()`;

/** RGBA of what a camera shows, as base64. */
const PICTURE = `async (element) => {
  if (element.decode) await element.decode();
  const canvas = document.createElement("canvas");
  canvas.width = element.videoWidth ?? element.naturalWidth;
  canvas.height = element.videoHeight ?? element.naturalHeight;
  const context = canvas.getContext("2d");
  context.drawImage(element, 0, 0);
  let text = "";
  for (const byte of context.getImageData(0, 0, canvas.width, canvas.height).data) text += String.fromCharCode(byte);
  return btoa(text);
}`;

export class PlayerPage {
  constructor(readonly page: Page) {}

  async until(expression: string): Promise<void> {
    // Not `waitForFunction`: it evaluates text inside of the page, where the policy forbids that.
    while ((await this.page.evaluate(expression)) !== true) await Bun.sleep(10);
  }

  async settled(): Promise<void> {
    await this.until(SETTLED);
  }

  async scrub(t: number): Promise<void> {
    const move = `scrubber.value = ${t}; scrubber.dispatchEvent(new Event("input"))`;
    await this.page.evaluate(`(() => { const scrubber = document.querySelector("#scrubber"); ${move} })()`);
    await this.settled();
  }

  /** The cursor is at `t`, and all is shown. */
  async arrived(t: number): Promise<void> {
    await this.until(`Math.abs(document.querySelector("#scrubber").value - ${t}) < 0.002`);
    await this.settled();
  }

  async time(): Promise<number> {
    return Number(await this.page.locator("#scrubber").inputValue());
  }

  /** The time of every video. */
  async times(): Promise<number[]> {
    return await this.page.evaluate('[...document.querySelectorAll("video")].map((video) => video.currentTime)');
  }

  async picture(at: number, kind: "video" | "img" = "video"): Promise<Uint8Array> {
    const rgba: string = await this.page.evaluate(`(${PICTURE})(document.querySelectorAll(".camera ${kind}")[${at}])`);
    return Uint8Array.fromBase64(rgba).filter((_, index) => index % 4 < 3);
  }

  async row(): Promise<ShownRow> {
    const fact = (name: string) => this.page.locator(`#readout dd[data-fact="${name}"]`).textContent();
    return {
      step: await fact("Step"),
      observation: await fact("Observation"),
      latency: await fact("Latency"),
      denoise: await fact("denoise"),
      actionRow: await fact("Action row"),
      joint: await this.page.locator("#joints tr").nth(1).locator("th, td.number").allTextContents(),
    };
  }
}
