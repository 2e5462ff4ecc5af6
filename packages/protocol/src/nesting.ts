const quote = 0x22
const backslash = 0x5c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/**
 * Whether the objects and arrays of a JSON text are nested in more than `levels` levels. The text itself shows it, before
 * anything is made of it: to walk the values of 64 KiB takes a hundred times as long. If the text is not JSON, the answer
 * means nothing.
 */
export function isNestedDeeper(text: string, levels: number): boolean {
  // Every level opens and closes.
  if (text.length <= levels * 2) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === quote) {
      i = endOfString(text, i + 1)
      if (i < 0) return false
    } else if (unit === openBracket || unit === openBrace) {
      if (++depth > levels) return true
    } else if (unit === closeBracket || unit === closeBrace) depth--
  }
  return false
}

/** The position of the quote that ends a string; a quote behind an odd number of backslashes is part of it. -1: nowhere. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end
    while (before > from && text.charCodeAt(before - 1) === backslash) before--
    if ((end - before) % 2 === 0) return end
  }
  return -1
}
