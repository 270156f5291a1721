/** A page with one message: an expired link, too many tries, not found. */
import { layout } from "./layout.ts";
import { html } from "./markup.ts";

export interface MessagePage {
  heading: string;
  text: string;
  link?: { href: string; text: string };
}

export function messagePage({ heading, text, link }: MessagePage): string {
  return layout({
    heading,
    width: "card",
    content: html`<div class="panel">
<p>${text}</p>
${link === undefined ? undefined : html`<p><a href="${link.href}">${link.text}</a></p>`}
</div>`,
  });
}
