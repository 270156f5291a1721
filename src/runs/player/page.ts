/** The elements of the page that the player finds and makes. */

/** The service sends page and script together, so a missing element is a bug. */
export function find<E extends HTMLElement>(id: string, kind: new () => E): E {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  kind?: string,
  ...inside: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  if (kind !== undefined) element.className = kind;
  element.append(...inside);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function draw(name: string, attributes: Readonly<Record<string, string>>): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
