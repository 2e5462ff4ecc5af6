import Type from 'typebox'

/** Upper bound of an identifier or a name, in bytes of UTF-8 [WS6, TOK1]. */
export const maxIdBytes = 255

/** How many bytes a string takes in UTF-8. Cheap when the string cannot reach the bound. */
export function fitsBytes(value: string, maxBytes: number): boolean {
  if (value.length * 3 <= maxBytes) return true
  if (value.length > maxBytes) return false
  return utf8Length(value) <= maxBytes
}

/** A lone surrogate counts as the three bytes of U+FFFD, which takes its place in UTF-8. */
export function utf8Length(value: string): number {
  let bytes = 0
  for (let i = 0; i < value.length; i++) {
    const unit = value.charCodeAt(i)
    if (unit < 0x80) bytes += 1
    else if (unit < 0x800) bytes += 2
    else if (isHighSurrogate(unit) && isLowSurrogate(value.charCodeAt(i + 1))) {
      bytes += 4
      i++
    } else bytes += 3
  }
  return bytes
}

/** Bytes of a value as JSON; infinite where it is nested too deep to be written again. */
export function jsonBytes(value: object): number {
  try {
    return utf8Length(JSON.stringify(value))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** False for NaN, which is what charCodeAt gives past the end. */
function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}

/**
 * Text that a store can keep and give back: whole Unicode (no lone surrogate, which has no UTF-8 form)
 * and no NUL (which PostgreSQL text cannot hold).
 */
export function isStorable(value: string): boolean {
  return value.isWellFormed() && !value.includes('\0')
}

/** A string of at most `maxBytes` bytes of UTF-8 that a store can keep. */
export function boundedText(maxBytes: number, description: string) {
  return Type.Refine(
    Type.String({ maxLength: maxBytes, description: bounded(description, maxBytes) }),
    (value) => fitsBytes(value, maxBytes) && isStorable(value),
    () => `must be at most ${maxBytes} bytes of UTF-8, without NUL or lone surrogates`,
  )
}

/** JSON Schema counts characters; what counts here is bytes, so documents say it in words. */
function bounded(description: string, maxBytes: number): string {
  return `${description} At most ${maxBytes} bytes of UTF-8.`
}

/** The same, and not blank. */
export function id(description: string) {
  return Type.Refine(
    Type.String({
      minLength: 1,
      maxLength: maxIdBytes,
      pattern: '\\S',
      description: bounded(description, maxIdBytes),
    }),
    (value) => fitsBytes(value, maxIdBytes) && isStorable(value),
    () => `must be 1 to ${maxIdBytes} bytes of UTF-8, not blank, without NUL or lone surrogates`,
  )
}

/** A URL path cannot carry these as names, also when they are percent-encoded [ID3]. */
export function isDotSegment(text: string): boolean {
  return text === '.' || text === '..'
}

/** Of a schema of texts: those that can be the user_id or the role of a participant [ID3]. */
export function noDotSegment<T extends Type.TSchema>(schema: T) {
  return Type.Refine(
    schema,
    (value) => typeof value !== 'string' || !isDotSegment(value),
    () => 'must not be "." or "..", which no URL path can carry',
  )
}

/** The user_id or the role of a participant. */
export function participantName(description: string) {
  return noDotSegment(id(`${description} Not "." or "..".`))
}

export const uuidPattern = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$'

/** A call identifier [UUID1]: any case comes in, lower case goes out. */
export function uuid(description = 'Call identifier.') {
  return Type.String({ pattern: uuidPattern, description })
}

export function timestamp(description: string) {
  return Type.String({ format: 'date-time', description: `${description} ISO 8601, UTC.` })
}
