import { type Frame, isRelayFrame } from './frames.ts'

export type Answer = { readonly ok: unknown } | { readonly failed: 'unavailable' | 'unknown'; readonly why: string }
/** `id`: 0 where nobody waits for an answer. */
export type Question = readonly [id: number, frame: Frame]
/** The same answer to each of these questions. */
export type Answers = readonly [ids: number[], frame: null, answer: Answer]
export type Message = Question | Answers

export interface Batch {
  readonly from: string
  /** Counts the batches of a sender: what is read twice is done once. */
  readonly n: number
  readonly messages: readonly Message[]
}

/** Adds an answer to the outgoing messages; most are the same as the previous one. */
export function addAnswer(messages: Message[], id: number, answer: Answer): void {
  const last = messages.at(-1)
  if (last !== undefined && last[1] === null && isSame(last[2], answer)) last[0].push(id)
  else messages.push([[id], null, answer])
}

function isSame(one: Answer, other: Answer): boolean {
  return 'ok' in one && 'ok' in other && typeof one.ok !== 'object' && one.ok === other.ok
}

/** JSON, and below it the texts of relays, a line each: they are JSON already, and are not written as JSON once more. */
export function writeBatch({ from, n, messages }: Batch): string {
  const texts: string[] = []
  const about = messages.map((message) => {
    const [id, frame] = message
    if (frame === null || !isRelayFrame(frame)) return message
    const [name, text, ...rest] = frame
    texts.push(text)
    return [id, [name, '', ...rest]]
  })
  return [JSON.stringify([from, n, about]), ...texts].join('\n')
}

/** Throws if the bytes are not a batch. Each text is a string of its own: part of a longer one would keep all of it in memory. */
export function readBatch(bytes: Buffer): Batch {
  let end = -1
  const nextLine = () => {
    const begin = end + 1
    end = bytes.indexOf('\n', begin)
    if (end < 0) end = bytes.length
    return bytes.toString('utf8', begin, end)
  }
  const [from, n, messages] = JSON.parse(nextLine())
  for (const [, frame] of messages) if (frame?.[0] === 'relay') frame[1] = nextLine()
  return { from, n, messages }
}
