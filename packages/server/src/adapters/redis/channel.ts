import type { Call } from '../../call/call.ts'
import { callMark, readCall } from '../../call/read.ts'
import { connectionName, idOf, isReplacedBy } from '../../ports/node-name.ts'
import { type Client, connectListener, type Store, tellErrors } from './connection.ts'

/** What a node asks another about a socket that it holds. */
export type Request = 'probe' | 'retire' | 'close'

export interface ChannelOptions {
  readonly url: string
  readonly store: Store
  readonly node: string
  /** News of sessions, and what the node is asked. */
  readonly onNews: (message: string) => void
  readonly onRequest: (op: Request, sessionId: string, socket: string, rest: string) => Promise<string>
  /** What another node has just committed. */
  readonly onCall: (call: Call) => void
  /** The store does not know this node any more: it was emptied, or away for long. */
  readonly onForgotten: () => Promise<void>
  /** What was said meanwhile was not heard. */
  readonly onRebuilt: () => Promise<void>
  readonly onError: (error: unknown) => void
}

export interface Channel {
  start(): Promise<void>
  /** The node's answer; `gone` where it is not there any more, undefined where it does not answer in time. */
  ask(node: string, op: Request, sessionId: string, socket: string, rest?: string): Promise<string | undefined>
  /** Lets a node know what a call is now; it may be lost. */
  tell(node: string, call: Call): void
  isAlive(node: string): boolean
  /** Whether it is known for sure that a node does not say that it lives, though it could: nobody lost what it said. */
  isGone(node: string): boolean
  /** The same, after another look where it is not known to live: it may have started a moment ago. */
  isThere(node: string): Promise<boolean>
  /** How long ago the store was there for sure, in ms. */
  awayMs(): number
  /** Resolves when everything that was published to this node before is heard; false where nothing was for 3 s. */
  heard(): Promise<boolean>
  close(): Promise<void>
}

const beatMs = 1_000
/** Without a word from itself for so long a node takes its subscription for dead; others take the node for dead. */
const deafMs = 3_000
/** Its own channel may take so long at the start. */
const startMs = 10_000
const deadMs = 5_000
/** Another subscription is made so long after one that ended; what was missed is asked for again after a failure. In ms. */
const againMs = 100
const behindMs = 3_000
/** A node on whose channel nobody listened for so long is gone, in ms. */
const silentMs = 3_000
/** A holder is asked for a sign of life within 3 s [PLACE4]. */
const askMs = 4_500

export const channelOf = (node: string) => `rw:n:${node}`

/** The channel on which a node is told of its sessions. What it says is a hint: the log is what is read. */
export function createChannel(options: ChannelOptions): Channel {
  const { url, store, node, onNews, onRequest, onCall, onForgotten, onRebuilt, onError } = options
  const mine = channelOf(node)
  const waiting = new Map<string, (answer: string | undefined) => void>()
  /** When each node was last known to live; when this one began to listen for that, and last could. */
  const seen = new Map<string, number>()
  let living: ReadonlySet<string> = new Set()
  let listensSince = 0
  let beatAt = 0
  /** When the list of who lives was found without this node. */
  let emptiedAt = 0
  let subscriber: Client | undefined
  const told = new Set<string>()
  /** Something was not heard, and the store could not be asked for it yet. */
  let isBehind = false
  let notBefore = 0
  let heardAt = performance.now()
  let timer: Timer | undefined
  let last = 0
  let isClosed = false
  /** The later run under the id of this one that was told of. */
  let replacedBy: string | undefined

  function hear(message: string): void {
    if (message.startsWith('B ')) {
      heardAt = performance.now()
      settle(message, '')
    } else if (message.startsWith('A ')) {
      const [, id = '', answer = ''] = message.split(' ')
      settle(id, answer)
    } else if (message.startsWith(`${callMark} `)) hearOfCall(message.slice(callMark.length + 1))
    else if (message.startsWith('Q ')) void answer(message).catch(onError)
    else onNews(message)
  }

  function hearOfCall(text: string): void {
    try {
      const call = readCall(JSON.parse(text))
      // It is a hint: whoever needs the call reads it.
      if (call !== undefined) onCall(call)
    } catch (error) {
      onError(error)
    }
  }

  async function answer(message: string): Promise<void> {
    const [, id, from = '', op, sessionId = '', socket = '', ...rest] = message.split(' ')
    const result = await onRequest(op as Request, sessionId, socket, rest.join(' '))
    await store.publish(channelOf(from), `A ${id} ${result}`)
  }

  function settle(id: string, value: string | undefined): void {
    waiting.get(id)?.(value)
    waiting.delete(id)
  }

  /** Resolves with the answer, or undefined when the time is over. */
  function expect(id: string, ms: number): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const deadline = setTimeout(() => settle(id, undefined), ms)
    waiting.set(id, (value) => {
      clearTimeout(deadline)
      resolve(value)
    })
    return promise
  }

  function subscribe(isFirst: boolean): void {
    heardAt = performance.now()
    const client = connectListener(url, store.client, connectionName(idOf(node)))
    subscriber = client
    if (client === undefined) return
    tellErrors(client, onError, told)
    client.on('end', () => {
      if (client === subscriber && !isClosed) setTimeout(() => replace(client), againMs)
    })
    client.on('message', (_channel: string, message: string) => {
      if (client === subscriber) hear(message)
    })
    let isNew = isFirst
    client.on('ready', () => {
      client.subscribe(mine).then(() => {
        if (!isNew) fallBehind()
        isNew = false
        catchUp()
      }, tellRefusal)
    })
  }

  /** A connection that ended meanwhile subscribes when it is back; one that stays deaf is replaced. */
  function tellRefusal(error: Error): void {
    if (error.name === 'ReplyError') onError(error)
  }

  function replace(client: Client | undefined): void {
    if (client === subscriber && !isClosed) subscribe(false)
  }

  /** Subscriber and store have a connection each, which come back one after the other. */
  function catchUp(): void {
    if (!isBehind || store.client.status !== 'ready' || performance.now() < notBefore) return
    isBehind = false
    onRebuilt().catch((error) => {
      isBehind = true
      notBefore = performance.now() + behindMs
      onError(error)
    })
  }

  /** Something may have been said that this node did not hear. */
  function fallBehind(): void {
    isBehind = true
    notBefore = 0
  }

  async function beat(): Promise<void> {
    if (isClosed) return
    last++
    if (performance.now() - heardAt > deafMs) {
      const deaf = subscriber
      replace(deaf)
      deaf?.disconnect()
    }
    const [[isNew, ...names]] = await Promise.all([
      store.run('nodes', ['rw:nodes'], [node, deadMs]),
      store.publish(mine, `B ${last}`),
    ])
    // Somebody emptied the store, or it forgot this node while it could not beat.
    if (isNew === 1 && beatAt !== 0) {
      emptiedAt = performance.now()
      onForgotten().catch(onError)
      fallBehind()
    }
    catchUp()
    const now = performance.now()
    // While the store was away nobody could say that it lives; a list that was emptied is no proof of absence either.
    if (now - beatAt > 2 * beatMs) {
      listensSince = now
      for (const other of seen.keys()) seen.set(other, now)
    }
    beatAt = now
    living = new Set(names.map(String))
    warnIfReplaced()
    for (const other of living) seen.set(other, now)
    for (const [other, at] of seen) if (now - at > deadMs) seen.delete(other)
  }

  /** Others take the sockets of this node for those of an earlier run: its clients come back, again and again. */
  function warnIfReplaced(): void {
    const successor = [...living].find((each) => isReplacedBy(node, each))
    if (successor === undefined || successor === replacedBy) return
    replacedBy = successor
    onError(new Error('another process runs under the id of this node: each needs a RINGWIRE_NODE_ID of its own'))
  }

  function isAlive(other: string): boolean {
    // An earlier run of this node, or of one that has started again.
    if (isReplacedBy(other, node)) return false
    for (const each of living) if (isReplacedBy(other, each)) return false
    return seen.has(other) || performance.now() - listensSince < deadMs
  }

  /** All had the time to say it since the list was emptied, or this node could not look. */
  function isGone(other: string): boolean {
    const now = performance.now()
    return !living.has(other) && now - beatAt < deafMs && now - Math.max(listensSince, emptiedAt) > deadMs
  }

  /** False where the node is gone: nobody listens on its channel, and that stays so for longer than it takes to connect again. */
  async function isHeardBy(to: string, message: string): Promise<boolean> {
    if (!isAlive(to)) await beat()
    for (const until = performance.now() + silentMs; isAlive(to) && performance.now() < until; await Bun.sleep(100)) {
      if ((await store.publish(channelOf(to), message)) > 0) return true
    }
    return false
  }

  async function heard(): Promise<boolean> {
    last++
    const id = `B ${last} ${crypto.randomUUID()}`
    const answer = expect(id, deafMs)
    await store.publish(mine, id)
    return (await answer) !== undefined
  }

  return {
    async start() {
      subscribe(true)
      // Its first own word says that it hears.
      for (const until = performance.now() + startMs; ; ) {
        if (subscriber?.status === 'ready' && (await heard().catch(() => false))) break
        if (performance.now() > until) throw new Error('the channel of this node cannot be subscribed')
        await Bun.sleep(25)
      }
      await beat()
      // Replies that were lost with a connection of the store told this node what nobody else was told.
      for (const event of ['ready', '-node']) store.client.on(event, fallBehind)
      timer = setInterval(() => void beat().catch(onError), beatMs)
    },
    async ask(to, op, sessionId, socket, rest = '') {
      const id = crypto.randomUUID()
      const answered = expect(id, askMs)
      const isThere = isHeardBy(to, `Q ${id} ${node} ${op} ${sessionId} ${socket} ${rest}`)
      try {
        // Whatever is slow, nobody waits longer than for the answer.
        return await Promise.race([answered, isThere.then((heard) => (heard ? answered : 'gone'))])
      } finally {
        settle(id, undefined)
      }
    },
    tell(to, call) {
      store.publish(channelOf(to), `${callMark} ${JSON.stringify(call)}`).catch(() => {
        // It was a hint.
      })
    },
    isAlive,
    isGone,
    async isThere(other) {
      if (!isAlive(other)) await beat()
      return isAlive(other)
    },
    awayMs: () => performance.now() - beatAt,
    heard,
    async close() {
      isClosed = true
      clearInterval(timer)
      for (const id of [...waiting.keys()]) settle(id, undefined)
      await store.client.zrem('rw:nodes', node).catch(() => undefined)
      subscriber?.disconnect()
    },
  }
}
