const pattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(?:Z|[+-](\d\d):(\d\d))$/

/**
 * An ISO 8601 instant with an existing day and its offset [TIME1], in milliseconds since the epoch; undefined for anything
 * else. An engine may take the 30th of February for the 2nd of March.
 */
export function readInstant(text: string): number | undefined {
  const [, ...parts] = pattern.exec(text) ?? []
  if (parts.length === 0) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, aheadH = 0, aheadM = 0] = parts.map((part) =>
    Number(part ?? 0),
  )
  if (day < 1 || day > daysOf(year, month) || hour > 23 || minute > 59 || second > 59) return undefined
  if (aheadH > 23 || aheadM > 59) return undefined
  return Date.parse(text)
}

/** In a query a plus sign that was not encoded arrives as a space. */
export function readQueryInstant(text: string): number | undefined {
  return readInstant(text.replace(/ (?=\d\d:\d\d$)/, '+'))
}

/** 0 if the month does not exist. */
function daysOf(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  if (month < 1 || month > 12) return 0
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}
