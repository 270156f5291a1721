/**
 * The scene that `tendon sample` draws, as SVG: a wooden table, two arms and a red block, seen by three cameras.
 *
 * Only a picture for trying things out: no kinematics, and nothing in it is a photograph of anything.
 */
import { RandomStream } from "../../std/random.ts";

/** The cameras of the drawn scene, in the order of the wire. */
export const VIEWS = ["top", "left", "right"] as const;
export type View = (typeof VIEWS)[number];

/** Pixels of a drawn frame, as the robot's cameras send them. */
export const FRAME_PX = { width: 640, height: 360 } as const;

/** Numbers in [0, 1) that depend on `key` alone: the same key draws the same picture everywhere. */
function unitStream(key: string): () => number {
  const stream = new RandomStream(key);
  return () => stream.word() / 2 ** 32;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Table coordinates (u to the right, v towards the camera, both 0 to 1) to pixels, with perspective. */
type Surface = (u: number, v: number) => Point;

function surface(far: readonly [Point, Point], near: readonly [Point, Point]): Surface {
  const ratio = (far[1].x - far[0].x) / (near[1].x - near[0].x);
  return (u, v) => {
    // Equal steps on the table shrink with distance; s = 1 is the near edge.
    const s = (v * ratio) / (v * ratio + 1 - v);
    const left = { x: far[0].x + (near[0].x - far[0].x) * s, y: far[0].y + (near[0].y - far[0].y) * s };
    const right = { x: far[1].x + (near[1].x - far[1].x) * s, y: far[1].y + (near[1].y - far[1].y) * s };
    return { x: left.x + (right.x - left.x) * u, y: left.y + (right.y - left.y) * u };
  };
}

function polygon(points: readonly Point[], attributes: string): string {
  return `<polygon points="${points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" ")}" ${attributes}/>`;
}

/** The table: staggered planks, each with its own tone and grain. */
function planks(at: Surface, rows: number, random: () => number): string {
  const parts: string[] = [];
  for (let row = 0; row < rows; row++) {
    const [v0, v1] = [row / rows, (row + 1) / rows];
    let u = -random() * 0.15;
    while (u < 1) {
      const end = u + 0.1 + random() * 0.2;
      const [a, b] = [Math.max(0, u), Math.min(1, end)];
      const tone = random();
      const fill = `rgb(${Math.round(188 + 42 * tone)},${Math.round(146 + 44 * tone)},${Math.round(104 + 44 * tone)})`;
      parts.push(
        polygon([at(a, v0), at(b, v0), at(b, v1), at(a, v1)], `fill="${fill}" stroke="#a87c52" stroke-width=".5"`),
      );
      for (let line = 0; line < 3; line++) {
        const v = v0 + (v1 - v0) * (0.15 + 0.7 * random());
        const [p, q] = [at(a, v), at(b, v + (random() - 0.5) * 0.01)];
        parts.push(
          `<path d="M${p.x.toFixed(1)} ${p.y.toFixed(1)}L${q.x.toFixed(1)} ${q.y.toFixed(1)}" stroke="#8d6136" stroke-opacity="${(0.1 + 0.35 * random()).toFixed(2)}" stroke-width=".9"/>`,
        );
      }
      u = end;
    }
  }
  return parts.join("");
}

/** A box standing on the table around (u, v): top, front and its shadow. */
function block(at: Surface, u: number, v: number, size: number, heightPx: number): string {
  const corner = (du: number, dv: number, lift: number): Point => {
    const p = at(u + du * size, v + dv * size * 1.3);
    return { x: p.x, y: p.y - lift };
  };
  const base = [corner(-1, -1, 0), corner(1, -1, 0), corner(1, 1, 0), corner(-1, 1, 0)] as const;
  const top = [
    corner(-1, -1, heightPx),
    corner(1, -1, heightPx),
    corner(1, 1, heightPx),
    corner(-1, 1, heightPx),
  ] as const;
  const shadow = base.map((p) => ({ x: p.x + heightPx * 0.5, y: p.y + heightPx * 0.2 }));
  return [
    polygon(shadow, 'fill="#3a2412" fill-opacity=".4"'),
    polygon([base[0], top[0], top[3], base[3]], 'fill="#8f1420"'),
    polygon([base[1], top[1], top[2], base[2]], 'fill="#7a101b"'),
    polygon([top[3], top[2], base[2], base[3]], 'fill="#a81a28"'),
    polygon(top, 'fill="#d22b3a" stroke="#ee7680" stroke-width="1"'),
  ].join("");
}

/** An arm as the top camera sees it: column, two links and a gripper with two fingers. Angles in radians, 0 pointing away from the camera. */
function arm(base: Point, angles: readonly [number, number, number], opening: number): string {
  const [a, b, c] = angles;
  const elbow = { x: base.x + 92 * Math.sin(a), y: base.y - 92 * Math.cos(a) };
  const wrist = { x: elbow.x + 74 * Math.sin(b), y: elbow.y - 74 * Math.cos(b) };
  const link = (p: Point, q: Point, width: number, colour: string) =>
    `<path d="M${p.x.toFixed(1)} ${p.y.toFixed(1)}L${q.x.toFixed(1)} ${q.y.toFixed(1)}" stroke="${colour}" stroke-width="${width}" stroke-linecap="round"/>`;
  const finger = (side: number): string => {
    const spread = side * (5 + 11 * opening);
    const from = { x: wrist.x + spread * Math.cos(c), y: wrist.y + spread * Math.sin(c) };
    const to = { x: from.x + 30 * Math.sin(c), y: from.y - 30 * Math.cos(c) };
    return link(wrist, from, 9, "#34363a") + link(from, to, 7, "#4a4d52");
  };
  const shade = `<g transform="translate(16 10)" opacity=".28">${link(base, elbow, 30, "#241608")}${link(elbow, wrist, 24, "#241608")}</g>`;
  return [
    shade,
    `<rect x="${(base.x - 34).toFixed(1)}" y="${(base.y - 22).toFixed(1)}" width="68" height="60" rx="8" fill="#1c1d20" stroke="#3b3d42"/>`,
    link(base, elbow, 30, "#26282c"),
    link(base, elbow, 16, "#3b3e44"),
    finger(-1),
    finger(1),
    link(elbow, wrist, 24, "#222428"),
    link(elbow, wrist, 12, "#383b40"),
    `<circle cx="${elbow.x.toFixed(1)}" cy="${elbow.y.toFixed(1)}" r="17" fill="#2d3035" stroke="#62666e"/>`,
    `<circle cx="${wrist.x.toFixed(1)}" cy="${wrist.y.toFixed(1)}" r="12" fill="#2d3035" stroke="#62666e"/>`,
    `<circle cx="${elbow.x.toFixed(1)}" cy="${elbow.y.toFixed(1)}" r="5" fill="#b9bdc4"/>`,
  ].join("");
}

/** What a wrist camera sees of its own gripper: two dark fingers from below. */
function fingers(opening: number, lean: number): string {
  const gap = 14 + 66 * opening;
  const one = (side: number): string => {
    const x = 320 + lean + side * gap;
    return [
      polygon(
        [
          { x: x + side * 66, y: 362 },
          { x: x + side * 20, y: 262 },
          { x: x + side * 2, y: 226 },
          { x: x - side * 6, y: 268 },
          { x: x - side * 2, y: 362 },
        ],
        'fill="#191a1d" stroke="#3c3f45" stroke-width="2"',
      ),
      polygon(
        [
          { x: x + side * 14, y: 268 },
          { x: x + side * 3, y: 236 },
          { x: x - side * 2, y: 270 },
          { x: x + side * 4, y: 330 },
        ],
        'fill="#4b4f57"',
      ),
    ].join("");
  };
  return `${one(-1) + one(1)}<rect x="214" y="342" width="212" height="20" fill="#0f1012"/>`;
}

function topView(random: () => number): string {
  const at = surface(
    [
      { x: 82, y: 88 },
      { x: 532, y: 96 },
    ],
    [
      { x: -30, y: 372 },
      { x: 632, y: 372 },
    ],
  );
  const [u, v] = [0.4 + 0.2 * random(), 0.3 + 0.2 * random()];
  return [
    planks(at, 13, random),
    '<rect x="206" y="318" width="220" height="42" rx="4" fill="#c7ccd2" stroke="#878d95"/>',
    block(at, u, v, 0.055, 26),
    arm({ x: 142, y: 340 }, [0.25 * random(), 0.2 + 0.5 * random(), 0.2 + 0.5 * random()], random()),
    arm({ x: 492, y: 340 }, [-0.25 * random(), -0.2 - 0.5 * random(), -0.2 - 0.5 * random()], random()),
    '<path d="M120 226C58 240 44 300 92 362" stroke="#0b0b0c" stroke-width="3" fill="none"/>',
    '<path d="M520 226C584 244 598 308 540 362" stroke="#0b0b0c" stroke-width="3" fill="none"/>',
  ].join("");
}

function wristView(side: -1 | 1, random: () => number): string {
  const at = surface(
    [
      { x: 70 + 30 * side, y: 152 },
      { x: 590 + 30 * side, y: 152 },
    ],
    [
      { x: -320, y: 372 },
      { x: 960, y: 372 },
    ],
  );
  const u = 0.5 - side * (0.04 + 0.08 * random());
  return [
    planks(at, 11, random),
    block(at, u, 0.35 + 0.2 * random(), 0.07, 74),
    `<ellipse cx="${320 - side * 150}" cy="210" rx="60" ry="16" fill="#2b2118" fill-opacity=".3"/>`,
    `<path d="M${320 - side * 420} 120L${320 - side * 180} 205" stroke="#26282c" stroke-width="38" stroke-linecap="round"/>`,
    `<path d="M${320 - side * 180} 205l${side * 34} 18m${side * -34} -18l${side * 30} -8" stroke="#3d4046" stroke-width="10" stroke-linecap="round"/>`,
    fingers(0.2 + 0.7 * random(), side * 12),
  ].join("");
}

/** One camera's view of the scene, as an SVG document without text or scripts. */
export function sceneSvg(view: View, seed: number): string {
  const random = unitStream(`scene/${seed}/${view}`);
  const { width, height } = FRAME_PX;
  const inside = view === "top" ? topView(random) : wristView(view === "left" ? -1 : 1, random);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" fill="none">`,
    '<defs><linearGradient id="wall" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#16181b"/><stop offset="1" stop-color="#060607"/></linearGradient>',
    '<radialGradient id="lamp" cx=".45" cy=".35" r=".8"><stop offset="0" stop-color="#fff" stop-opacity=".16"/><stop offset="1" stop-color="#000" stop-opacity=".28"/></radialGradient></defs>',
    `<rect width="${width}" height="${height}" fill="url(#wall)"/>`,
    '<path d="M300 0v90M470 0v96" stroke="#2a2d31" stroke-width="5"/>',
    inside,
    `<rect width="${width}" height="${height}" fill="url(#lamp)"/>`,
    "</svg>",
  ].join("");
}
