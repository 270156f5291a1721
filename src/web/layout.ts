/** The layout of all pages for people: head, header, navigation, banner, and the content security policy. */
import { hidden, PROBLEM_ID } from "./field.ts";
import { Html, html } from "./markup.ts";
import { STYLE } from "./style.ts";

/** The signed-in person, and the token that their forms carry. */
export interface Viewer {
  email: string;
  csrf: string;
}

export interface Frame {
  /** Title and h1 of the page. */
  readonly heading: string;
  readonly viewer?: Viewer | undefined;
  readonly here?: "/account" | "/account/runs" | "/device";
  readonly problem?: string | undefined;
  readonly notice?: string | undefined;
  readonly lead?: Html | undefined;
  /** `card`, the default: one form or message in the middle; `sections`: the width of a text; `wide`: of pictures side by side. */
  readonly width?: "card" | "sections" | "wide";
  /** The page's script, which its policy allows by the nonce. */
  readonly script?: { readonly address: string; readonly nonce: string };
  readonly content: Html;
}

/** Content security policy: only the page's own style, no scripts, forms only to this service. */
export const WEB_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${new Bun.CryptoHasher("sha256").update(STYLE).digest("base64")}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** A problem comes first in the title, because screen readers say the title first after a form was sent. */
export function layout(frame: Frame): string {
  const { heading, viewer, here, problem, notice, lead, width = "card", script, content } = frame;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="same-origin">
<title>${problem === undefined ? "" : "Problem: "}${heading} · tendon</title>
${new Html(`<style>${STYLE}</style>`)}
${script === undefined ? undefined : html`<script type="module" nonce="${script.nonce}" src="${script.address}"></script>`}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<div class="bar">
<a class="brand" href="${viewer === undefined ? "/sign-in" : "/account"}">${MARK}tendon</a>
${viewer === undefined ? undefined : navigation(viewer, here)}
</div>
</header>
<main id="main" class="${width}" tabindex="-1">
<div class="top">
<h1>${heading}</h1>
${lead}
</div>
${problem === undefined ? undefined : html`<div class="banner problem" id="${PROBLEM_ID}" role="alert"><p>${problem}</p></div>`}
${notice === undefined ? undefined : html`<div class="banner notice" role="status"><p>${notice}</p></div>`}
${content}
</main>
</body>
</html>
`.text;
}

const MARK = new Html(
  `<svg class="mark" width="24" height="24" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="M5 18C5 9 19 15 19 6" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/><circle cx="5" cy="18" r="3.5" fill="currentColor"/><circle cx="19" cy="6" r="3.5" fill="currentColor"/></svg>`,
);

function navigation({ csrf }: Viewer, here: Frame["here"]): Html {
  const link = (href: string, text: string) =>
    html`<li><a href="${href}"${href === here ? new Html(' aria-current="page"') : undefined}>${text}</a></li>`;
  return html`<nav aria-label="Main">
<ul>
${link("/account", "Account")}
${link("/account/runs", "Runs")}
${link("/device", "Device")}
<li><form method="post" action="/sign-out">${hidden("csrf", csrf)}<button class="plain" type="submit">Sign out</button></form></li>
</ul>
</nav>`;
}

export function section(id: string, heading: string, content: Html): Html {
  return html`<section class="panel" id="${id}" aria-labelledby="${id}-heading">
<h2 id="${id}-heading">${heading}</h2>
${content}
</section>
`;
}

/** A page with one message: an expired link, too many tries, not found. */
export function messagePage(page: { heading: string; text: string; link?: { href: string; text: string } }): string {
  const { heading, text, link } = page;
  const further = link === undefined ? undefined : html`<p><a href="${link.href}">${link.text}</a></p>`;
  return layout({
    heading,
    content: html`<div class="panel">
<p>${text}</p>
${further}
</div>`,
  });
}
