/**
 * A relay passes on a copy of the sender's own text: a number keeps its digits, a string its escapes, an object the order
 * of its keys [REL4].
 *
 *   const sender = relaySender('ann', 'customer')
 *   relayText(text, envelope, sender, depth) → { ok: true, text: '{"event":…,"data":{…}}' } | { ok: false, problem }
 *
 * Over 350 lines: it is one parser, whose functions call each other.
 */

/**
 * `syntax`: the text is not a JSON object with an object `data`. `depth`: it is nested too deep. `repeated`: an object
 * in `data` names a key twice; `repeated outside`: one outside of `data` does. `text`: a string in `data` has a NUL or
 * a lone surrogate, which no store keeps.
 */
export type RelayTextProblem = 'syntax' | 'depth' | 'repeated' | 'repeated outside' | 'text'

/** `text` is the whole event as the peer gets it. */
export type RelayText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: RelayTextProblem }

/** Who sends; made once for each session. */
export interface RelaySender {
  readonly from_user_id: string
  readonly from_role: string
  /** The end of the text of each of its relays. */
  readonly end: string
}

export function relaySender(userId: string, role: string): RelaySender {
  const end = `,"from_user_id":${JSON.stringify(userId)},"from_role":${JSON.stringify(role)}}}`
  return { from_user_id: userId, from_role: role, end }
}

export interface RelayEnvelope {
  readonly event: string
  readonly data: { readonly call_uuid: string; from_user_id?: unknown; from_role?: unknown }
}

/**
 * Makes the text of a relay from what its sender wrote. `envelope` is what `JSON.parse` makes of it; its data gets the
 * sender's fields. The sender's own `from_user_id` and `from_role` are left out, and `call_uuid` is in lower case
 * [UUID1, REL3].
 */
export function relayText(text: string, envelope: RelayEnvelope, sender: RelaySender, depth: number): RelayText {
  const { event, data } = envelope
  const isForged = data.from_user_id !== undefined || data.from_role !== undefined
  const isUsual = !isForged && !upperCase.test(data.call_uuid) && mayBeAsWritten(text)
  data.from_user_id = sender.from_user_id
  data.from_role = sender.from_role
  if (isUsual) {
    const written = JSON.stringify({ event, data })
    if (isAsWritten(text, written, event, sender)) return { ok: true, text: written }
  }
  const scan = new Scan(text, depth)
  const problem = scan.run()
  if (problem !== undefined) return { ok: false, problem }
  return { ok: true, text: `{"event":"${event}","data":${scan.open(data.call_uuid.toLowerCase())}${sender.end}` }
}

const upperCase = /[A-F]/

/** NUL and lone surrogates are only ever written with this escape. */
function mayBeAsWritten(text: string): boolean {
  return text.startsWith('{"event":"') && text.endsWith('}}') && !text.includes('\\u')
}

/** The text that clients write before their data. */
const usualHead = /^\{"event":"[a-z_.]+",(?:"request_id":"[^"\\]*",)?(?:"n":\d+,)?$/

/**
 * Whether the sender wrote its data as `JSON.stringify` does, as most clients do. Then nothing is repeated or spelled in
 * another way, and the runtime's own text will do. It costs a fifth of what the walk costs.
 */
function isAsWritten(text: string, written: string, event: string, { end }: RelaySender): boolean {
  const data = written.slice('{"event":"",'.length + event.length, -end.length)
  const start = text.length - 2 - data.length
  return start > 0 && text.startsWith(data, start) && usualHead.test(text.slice(0, start))
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d
const minus = 0x2d
const plus = 0x2b
const dot = 0x2e
const zero = 0x30
const letterU = 0x75

/** Line breaks between the tokens are legal, and rare: without any control character strings need no look at each one. */
const controls = /[^ -\uffff]/
/** Up to this many keys of an object are compared one by one, which is cheaper than a set of them. */
const fewKeys = 16

/** The beginning of its key, and the beginning and end of its value. */
interface Member {
  readonly name: string
  readonly keyStart: number
  readonly start: number
  readonly end: number
}

function isOrigin({ name }: Member): boolean {
  return name === 'from_user_id' || name === 'from_role'
}

/** One walk. Every method that reads returns the index behind what it read, or -1. */
class Scan {
  private readonly text: string
  private readonly mostLevels: number
  /** No control character is anywhere in the text. */
  private readonly isPlain: boolean
  private problem: RelayTextProblem = 'syntax'
  private dataStart = -1
  private dataEnd = -1
  private isInData = false
  /** A string in `data` has a NUL or a lone surrogate. */
  private isUnkeepable = false
  /** The members of `data`. */
  private readonly members: Member[] = []
  /** The beginnings and ends of the keys of the objects that are open. */
  private readonly keys: number[] = []
  /** The next backslash, as far as strings were read; one before that is old. */
  private nextBackslash = -1
  /** The last string has an escape in it. */
  private hasEscape = false

  constructor(text: string, mostLevels: number) {
    this.text = text
    this.mostLevels = mostLevels
    this.isPlain = !controls.test(text)
  }

  run(): RelayTextProblem | undefined {
    const { text } = this
    const start = this.space(0)
    if (text.charCodeAt(start) !== openBrace) return 'syntax'
    const end = this.object(start, 1)
    if (end < 0) return this.problem
    if (this.space(end) !== text.length || this.dataStart < 0) return 'syntax'
    if (this.isUnkeepable) return 'text'
    return text.isWellFormed() || text.slice(this.dataStart, this.dataEnd).isWellFormed() ? undefined : 'text'
  }

  /** Most senders name the call in lower case and leave the origin to the service: then `data` is one slice. */
  open(callUuid: string): string {
    const { text, members } = this
    const named = members.find(({ name }) => name === 'call_uuid')
    const isNamedSo = named !== undefined && text.slice(named.start + 1, named.end - 1) === callUuid
    if (isNamedSo && !members.some(isOrigin)) return text.slice(this.dataStart, this.dataEnd - 1)
    const kept = members.filter((member) => !isOrigin(member))
    const copies = kept.map(({ name, keyStart, end }) =>
      name === 'call_uuid' ? `"call_uuid":"${callUuid}"` : text.slice(keyStart, end),
    )
    return `{${copies.join(',')}`
  }

  private fail(problem: RelayTextProblem): -1 {
    this.problem = problem
    return -1
  }

  private space(from: number): number {
    let at = from
    for (;;) {
      const unit = this.text.charCodeAt(at)
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return at
      at++
    }
  }

  private value(at: number, levels: number): number {
    switch (this.text.charCodeAt(at)) {
      case quote:
        return this.string(at)
      case openBrace:
        return this.object(at, levels + 1)
      case openBracket:
        return this.array(at, levels + 1)
      case 0x74:
        return this.literal(at, 'true')
      case 0x66:
        return this.literal(at, 'false')
      case 0x6e:
        return this.literal(at, 'null')
      default:
        return this.number(at)
    }
  }

  private object(start: number, level: number): number {
    if (level > this.mostLevels) return this.fail('depth')
    const { text, keys } = this
    const base = keys.length
    let names: Set<string> | undefined
    let at = this.space(start + 1)
    if (text.charCodeAt(at) === closeBrace) return at + 1
    for (;;) {
      if (text.charCodeAt(at) !== quote) return -1
      this.hasEscape = false
      const keyEnd = this.string(at)
      if (keyEnd < 0) return -1
      if (this.hasEscape || keys.length - base >= 2 * fewKeys) names ??= this.namesFrom(base)
      if (names === undefined ? this.isAmong(base, at, keyEnd) : isIn(names, this.nameOf(at, keyEnd)))
        return this.fail(this.isInData ? 'repeated' : 'repeated outside')
      if (names === undefined) keys.push(at, keyEnd)
      const end = this.member(at, keyEnd, level)
      if (end < 0) return -1
      at = this.space(end)
      const unit = text.charCodeAt(at)
      if (unit === closeBrace) {
        keys.length = base
        return at + 1
      }
      if (unit !== comma) return -1
      at = this.space(at + 1)
    }
  }

  /** The rest of a member, from the end of its key on. */
  private member(keyStart: number, keyEnd: number, level: number): number {
    const at = this.space(keyEnd)
    if (this.text.charCodeAt(at) !== colon) return -1
    const start = this.space(at + 1)
    if (level > 2 || (level === 2 && !this.isInData)) return this.value(start, level)
    const name = this.nameOf(keyStart, keyEnd)
    const isData = level === 1 && name === 'data'
    if (isData) this.isInData = true
    const end = this.value(start, level)
    if (level === 2) this.members.push({ name, keyStart, start, end })
    if (!isData) return end
    this.isInData = false
    if (this.text.charCodeAt(start) !== openBrace) return -1
    this.dataStart = start
    this.dataEnd = end
    return end
  }

  private nameOf(keyStart: number, keyEnd: number): string {
    const name = this.text.slice(keyStart + 1, keyEnd - 1)
    return name.includes('\\') ? JSON.parse(`"${name}"`) : name
  }

  private namesFrom(base: number): Set<string> {
    const names = new Set<string>()
    for (let i = base; i < this.keys.length; i += 2) names.add(this.nameOf(this.keys[i]!, this.keys[i + 1]!))
    return names
  }

  /** Whether the same key, neither with an escape, was read in the object whose keys begin at `base`. */
  private isAmong(base: number, start: number, end: number): boolean {
    const { keys, text } = this
    for (let i = base; i < keys.length; i += 2) {
      let before = keys[i]!
      if (keys[i + 1]! - before !== end - start) continue
      let at = start
      while (at < end && text.charCodeAt(at) === text.charCodeAt(before)) {
        at++
        before++
      }
      if (at === end) return true
    }
    return false
  }

  private array(start: number, level: number): number {
    if (level > this.mostLevels) return this.fail('depth')
    const { text } = this
    let at = this.space(start + 1)
    if (text.charCodeAt(at) === closeBracket) return at + 1
    for (;;) {
      const end = this.value(at, level)
      if (end < 0) return -1
      at = this.space(end)
      const unit = text.charCodeAt(at)
      if (unit === closeBracket) return at + 1
      if (unit !== comma) return -1
      at = this.space(at + 1)
    }
  }

  private string(start: number): number {
    const { text } = this
    const from = start + 1
    if (this.isPlain) {
      const end = text.indexOf('"', from)
      if (this.nextBackslash < from) {
        const next = text.indexOf('\\', from)
        this.nextBackslash = next < 0 ? text.length : next
      }
      // A quote before the next backslash ends the string; where there is none, nothing does.
      if (end < this.nextBackslash) return end < 0 ? -1 : end + 1
    }
    return this.stringUnitByUnit(this.isPlain ? this.nextBackslash : from)
  }

  private stringUnitByUnit(from: number): number {
    const { text } = this
    for (let at = from; at < text.length; at++) {
      const unit = text.charCodeAt(at)
      if (unit === quote) return at + 1
      if (unit < 0x20) return -1
      if (unit === backslash) {
        at = this.escape(at + 1)
        if (at < 0) return -1
      }
    }
    return -1
  }

  /** Reads what follows a backslash; returns where its last unit is. */
  private escape(at: number): number {
    this.hasEscape = true
    const { text } = this
    const unit = text.charCodeAt(at)
    if (unit !== letterU) return isShortEscape(unit) ? at : -1
    const code = this.hex(at + 1)
    if (code < 0) return -1
    if (code >= 0xd800 && code <= 0xdbff && text.startsWith('\\u', at + 5)) {
      const low = this.hex(at + 7)
      if (low >= 0xdc00 && low <= 0xdfff) return at + 10
    }
    if (this.isInData && (code === 0 || (code >= 0xd800 && code <= 0xdfff))) this.isUnkeepable = true
    return at + 4
  }

  /** The number that four hexadecimal digits stand for. */
  private hex(from: number): number {
    let code = 0
    for (let at = from; at < from + 4; at++) {
      const digit = hexDigit(this.text.charCodeAt(at))
      if (digit < 0) return -1
      code = code * 16 + digit
    }
    return code
  }

  private literal(at: number, word: string): number {
    return this.text.startsWith(word, at) ? at + word.length : -1
  }

  private number(start: number): number {
    const { text } = this
    let at = text.charCodeAt(start) === minus ? start + 1 : start
    at = text.charCodeAt(at) === zero ? at + 1 : this.digits(at)
    if (at > 0 && text.charCodeAt(at) === dot) at = this.digits(at + 1)
    // In lower case, e and E are the same.
    if (at < 0 || (text.charCodeAt(at) | 0x20) !== 0x65) return at
    const sign = text.charCodeAt(at + 1)
    return this.digits(sign === plus || sign === minus ? at + 2 : at + 1)
  }

  /** At least one of them. */
  private digits(from: number): number {
    let at = from
    while (isDigit(this.text.charCodeAt(at))) at++
    return at === from ? -1 : at
  }
}

function isIn(names: Set<string>, name: string): boolean {
  if (names.has(name)) return true
  names.add(name)
  return false
}

function isDigit(unit: number): boolean {
  return unit >= zero && unit <= 0x39
}

function hexDigit(unit: number): number {
  if (isDigit(unit)) return unit - zero
  const letter = (unit | 0x20) - 0x61
  return letter >= 0 && letter < 6 ? letter + 10 : -1
}

function isShortEscape(unit: number): boolean {
  switch (unit) {
    case 0x6e: // n
    case 0x72: // r
    case quote:
    case backslash:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x74: // t
      return true
    default:
      return false
  }
}
