/** Shapes that TypeBox has no short form for: objects without further fields, and choices of words. */
import { type TObject, type TProperties, type TUnsafe, Type } from "@sinclair/typebox";

/** An object with these fields and no other. */
export function closed<Fields extends TProperties>(fields: Fields): TObject<Fields> {
  return Type.Object(fields, { additionalProperties: false });
}

export function oneOf<Word extends string>(...words: readonly Word[]): TUnsafe<Word> {
  return Type.Unsafe<Word>(Type.Union(words.map((word) => Type.Literal(word))));
}
