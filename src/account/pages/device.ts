/** `/device`: a person compares the code on the terminal, sees what asks and from where, and decides. */

import type { Reply } from "../../http/reply.ts";
import { seenSeconds } from "../../std/seen-clock.ts";
import { PageRefusal, type Person } from "../people.ts";
import { deviceConfirmPage, deviceDonePage, deviceEnterPage } from "../views/device.ts";
import { again, type FormVisit, formPerson, person, shown, type Visit, viewer } from "./page.ts";

/** The code of a complete link is shown to be compared, never taken as confirmed (RFC 8628, section 5.4). */
export async function showDevice(from: Visit): Promise<Reply> {
  const userCode = new URL(from.request.url).searchParams.get("user_code") ?? "";
  const next = userCode === "" ? "/device" : `/device?user_code=${encodeURIComponent(userCode)}`;
  const who = await person(from, next);
  return "token" in who ? shown(deviceEnterPage({ viewer: viewer(who), userCode })) : who;
}

export async function enterCode(from: FormVisit): Promise<Reply> {
  const person = await formPerson(from, "/device");
  if (!("token" in person)) return person;
  const typed = from.form("user_code");
  const found = await from.deps.deviceLogins.find(person, typed, from.network);
  const who = viewer(person);
  if (found instanceof PageRefusal) {
    return again(deviceEnterPage({ viewer: who, userCode: typed, problem: found.text }), found);
  }
  const { login, userCode } = found;
  const askedSecondsAgo = Math.max(0, seenSeconds(from.deps.clock) - login.createdAt);
  const { deviceName, address } = login;
  const askPassword = person.stale;
  return shown(deviceConfirmPage({ viewer: who, userCode, deviceName, address, askedSecondsAgo, askPassword }));
}

export async function decide(from: FormVisit): Promise<Reply> {
  const person = await formPerson(from, "/device");
  if (!("token" in person)) return person;
  const decision = from.form("decision");
  const who = viewer(person);
  const typed = from.form("user_code");
  const refused = await decided(from, person, decision, typed);
  if (refused) return again(deviceEnterPage({ viewer: who, userCode: typed, problem: refused.text }), refused);
  return shown(deviceDonePage({ viewer: who, decision: decision === "approve" ? "approved" : "denied" }));
}

/** The device gets a key, so approving it asks for what making one asks for. */
async function decided(
  { deps, form, network }: FormVisit,
  person: Person,
  decision: string,
  userCode: string,
): Promise<PageRefusal | undefined> {
  if (decision !== "approve" && decision !== "deny") return new PageRefusal("Choose one of the two buttons.");
  const approve = decision === "approve";
  const proof =
    approve && person.stale ? await deps.people.prove(person, { current: form("confirm"), network }) : undefined;
  return proof ?? (await deps.deviceLogins.decide(person, userCode, network, approve));
}
