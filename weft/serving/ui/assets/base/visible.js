// Makes what cannot be seen visible. What models and tools wrote may hold terminal escapes, overrides
// of the writing direction, or characters that no font draws; a reader should see that they are there.

const HIDDEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

function named(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** `text` with a sign for each character that would not show; line ends and tabs stay. */
export const visible = (text) => String(text).replaceAll("\r\n", "\n").replace(HIDDEN, named);

/** The same on one line, at most `most` characters. */
export function line(text, most) {
  const found = visible(
    String(text)
      .slice(0, most * 2)
      .replace(/\s+/g, " ")
      .trim(),
  );
  return found.length <= most ? found : `${found.slice(0, most - 1)}…`;
}
