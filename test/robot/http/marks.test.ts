/** Random weights and the device `echo` say so wherever a robot could meet them (contract section 2, last point). */
import { describe, expect, test } from "bun:test";
import { ECHO_WARNING, REFERENCE_WARNING } from "../../../src/bundle/describe.ts";
import type { Manifest } from "../../../src/bundle/manifest.ts";
import { manifest, statefulManifest } from "../manifests.ts";
import { Peer } from "../socket/peer.ts";
import { MODEL, observation, STATEFUL, type Stage, stage, VECTOR } from "../stage.ts";

/** Serves `facts` on a device, in place of the stage's own. */
function serves(at: Stage, facts: Manifest, device: string): void {
  const { catalog } = at.service.robot;
  const rates = catalog.models.get(facts.id)?.rates;
  if (rates === undefined) throw new Error("the stage serves the model");
  catalog.add(facts, rates, at.engine.model(facts, device));
}

async function marksOf(at: Stage) {
  const chunk = await at.chat(observation({ session_id: "s" }));
  const described = await at.chat({ model: MODEL, messages: [{ role: "user", content: "?" }] });
  const { choices } = (await described.json()) as { choices: { message: { content: string } }[] };
  const one = new Peer(at);
  const opened = await one.open();
  return {
    chunk: [chunk.status, chunk.headers.get("x-tendon-bundle")],
    described: [described.headers.get("x-tendon-bundle"), choices[0]?.message.content.split("\n").at(-1)],
    opened: [opened.type, opened.bundle],
  };
}

describe("what must never move a real arm is marked", () => {
  test("the device echo as random weights: in chunks, descriptions and session.opened", async () => {
    const at = await stage();
    serves(at, manifest(), "echo");
    expect(await marksOf(at)).toEqual({
      chunk: [200, "reference"],
      described: ["reference", ECHO_WARNING],
      opened: ["session.opened", "reference"],
    });
  });

  test("random weights, in session.opened too", async () => {
    const at = await stage();
    serves(at, manifest({ reference: true }), "cpu");
    expect(await marksOf(at)).toEqual({
      chunk: [200, "reference"],
      described: ["reference", REFERENCE_WARNING],
      opened: ["session.opened", "reference"],
    });
  });

  test("trained weights have no mark", async () => {
    const at = await stage();
    serves(at, manifest({ reference: false }), "cpu");
    const marks = await marksOf(at);
    expect([marks.chunk, marks.described[0], marks.opened]).toEqual([[200, null], null, ["session.opened", undefined]]);
  });
});

describe("GET /v1/robot/models", () => {
  test("every robot model with its facts, whether it is loaded, and the mark; it needs a key", async () => {
    const at = await stage();
    serves(at, manifest({ reference: false }), "echo");
    serves(at, { ...statefulManifest(), reference: false }, "cpu");
    expect((await at.send("/v1/robot/models")).status).toBe(401);
    const { catalog } = at.service.robot;
    const rates = catalog.models.get(MODEL)?.rates;
    if (rates) catalog.add(manifest({ id: "mine/arm:yam", reference: true }), rates);
    const answer = await at.send("/v1/robot/models", { headers: { authorization: `Bearer ${at.key}` } });
    const { object, data } = (await answer.json()) as { object: string; data: { id: string; bundle: string }[] };
    expect([answer.status, object]).toEqual([200, "list"]);
    expect(data.find(({ id }) => id === MODEL)).toEqual({
      ...{ id: MODEL, object: "robot.model", title: "Test model", cameras: ["top", "left", "right"] },
      ...{ frames: { first: 1, later: 1 }, frame_size: null, state: "joint", rows: 30, dt: 1 / 30, action_dim: 14 },
      ...{ action_space: "joint_position", stateful: false, bundle: "reference", ready: true },
      ...{ state_columns: expect.any(Array), action_columns: expect.any(Array) },
    } as never);
    expect(data.find(({ id }) => id === STATEFUL)).toMatchObject({ stateful: true, bundle: "trained", ready: true });
    const names = ["joint_1", "joint_2", "joint_3", "joint_4", "joint_5", "joint_6", "gripper"];
    const columns = names.map((name) => ({ name, unit: name === "gripper" ? "1" : "deg" }));
    expect(data.find(({ id }) => id === VECTOR)).toMatchObject({
      ...{
        cameras: ["front view", "wrist"],
        state: "vector",
        rows: 50,
        dt: 1 / 20,
        action_dim: 7,
        action_space: "vector",
      },
      state_columns: columns.map((column, index) => ({ ...column, from: "state", index })),
      action_columns: columns.map((column) => ({ ...column, min: -100, max: 100, max_jump: 20, max_step: 5 })),
    } as never);
    expect(data.find(({ id }) => id === "mine/arm:yam")).toMatchObject({ bundle: "reference", ready: false });
  });
});
