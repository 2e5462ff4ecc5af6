import type { Upstream } from '../ports/sessions.ts'

/** Replies that are kept for a resume at most [EXT2]. */
const maxReplies = 512

/** The n-th request took effect. Its reply may have to be sent again on another socket [EXT4]. */
export function rememberReply(upstream: Upstream, n: number, text: string | undefined): void {
  upstream.handled = n
  if (text === undefined) return
  upstream.replies.push({ n, text })
  if (upstream.replies.length > maxReplies) upstream.dropped = upstream.replies.shift()?.n ?? 0
}

/** The client has the replies up to that of the n-th request. */
export function dropReplies({ replies }: Upstream, n: number): void {
  let arrived = 0
  while (arrived < replies.length && replies[arrived]!.n <= n) arrived++
  if (arrived > 0) replies.splice(0, arrived)
}

/**
 * Marks acks of relays that could not be saved: they are lost if this node dies [EXT3]. Returns what the socket is sent
 * instead of `texts`, and changes the replies that are kept.
 */
export function markVolatile(
  acks: readonly string[],
  texts: readonly string[] | undefined,
  { replies }: Upstream,
): string[] | undefined {
  const unsaved = new Set(acks)
  for (const [i, { n, text }] of replies.entries()) if (unsaved.has(text)) replies[i] = { n, text: volatileAck(text) }
  return texts?.map((text) => (unsaved.has(text) ? volatileAck(text) : text))
}

function volatileAck(text: string): string {
  const { data, ...envelope } = JSON.parse(text)
  return JSON.stringify({ ...envelope, data: { ...data, volatile: true } })
}
