// From what a person typed to the value that a JSON Schema asks for. The server checks it again.

const PLAIN = { string: "text", number: "number", integer: "number", boolean: "boolean" };

/** choice, boolean, number, text, or json for every other shape. */
export function kindOf(schema) {
  if (Array.isArray(schema.enum) && schema.enum.length) return "choice";
  if (
    schema.type === undefined &&
    !Object.keys(schema).some((key) => key !== "description" && key !== "title")
  )
    return "text";
  return PLAIN[schema.type] || "json";
}

/** What a field holds before anybody typed: the schema's default. */
export function blank(schema) {
  if (schema.default === undefined) return "";
  if (kindOf(schema) === "choice") return String(Math.max(0, schema.enum.indexOf(schema.default)));
  return typeof schema.default === "string" ? schema.default : JSON.stringify(schema.default);
}

/** The value of `draft`. Throws: `Error` that says what is wrong. */
export function valueOf(schema, draft, name) {
  const where = name ? `${name}: ` : "";
  switch (kindOf(schema)) {
    case "choice":
      if (draft === "") throw new Error(`${where}choose one`);
      return schema.enum[Number(draft)];
    case "boolean":
      if (draft === "") throw new Error(`${where}say yes or no`);
      return draft === "true";
    case "number": {
      const found = Number(draft.trim().replace(",", "."));
      if (draft.trim() === "" || !Number.isFinite(found)) throw new Error(`${where}type a number`);
      return found;
    }
    case "text":
      return draft;
    default:
      try {
        return JSON.parse(draft);
      } catch {
        throw new Error(`${where}this is not JSON`);
      }
  }
}
