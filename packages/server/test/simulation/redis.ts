// Over 350 lines: it is one server, whose commands share its keys.
import type { Copies, Refusal, SessionWrite } from '../../src/cluster/copies.port.ts'
import type { Claiming, Copy, Directory, Master, Row, RowFields, Saying } from '../../src/cluster/directory.port.ts'
import type { Post, Reader, Signs } from '../../src/cluster/post.port.ts'
import type { Host, Scheduler } from './scheduler.ts'
import { Holders } from './signs.ts'
import { Server, type Way } from './way.ts'

/** What the server knows of one session. */
interface Stored {
  readonly owner: string | undefined
  readonly fence: number
  readonly origin: string
  readonly row: RowFields | undefined
  readonly state: string
  readonly log: readonly string[]
  readonly expiresAt: number
}

/** What a write goes on with. */
interface Before {
  readonly origin: string
  readonly row: RowFields | undefined
  readonly state: string | undefined
  readonly log: readonly string[]
}

/** Why a write was refused. */
type Refused = Refusal extends infer One ? (One extends Refusal ? Omit<One, 'index'> : never) : never

interface Letter {
  readonly id: number
  readonly batch: string
}

/** All that a server has. A replica has what it had a moment ago. */
interface Content {
  readonly sessions: Map<string, Stored>
  /** Of each participant, by its hash, the sessions in the order in which they were written first. */
  readonly index: Map<string, readonly string[]>
  readonly inboxes: Map<string, readonly Letter[]>
  readonly alive: Map<string, number>
  readonly words: Map<string, string>
}

const empty = (): Content => ({
  sessions: new Map(),
  index: new Map(),
  inboxes: new Map(),
  alive: new Map(),
  words: new Map(),
})

const copyOf = ({ sessions, index, inboxes, alive, words }: Content): Content => ({
  sessions: new Map(sessions),
  index: new Map(index),
  inboxes: new Map(inboxes),
  alive: new Map(alive),
  words: new Map(words),
})

const marker = 'marker'
/** Where the words say which node makes up sessions. */
const maker = 'maker'
/** A client that tried to go on with a session of which there is no copy leaves a trace for this time, in ms. */
const tombMs = 60_000

/**
 * A server of Redis, as the scripts of `stores/redis/lua` use it: what it does at once is whole or not at all. It promises
 * nothing more: it may be emptied, and a replica that lacks the end may take over.
 */
export class RedisWorld extends Server {
  readonly signs = new Holders()
  private content = empty()
  private replica = empty()
  private runs = 1
  private lastLetter = 0
  private readonly scheduler: Scheduler
  private readonly listeners = new Map<string, () => void>()

  constructor(scheduler: Scheduler) {
    super()
    this.scheduler = scheduler
  }

  get origin(): string {
    return `origin-${this.runs}`
  }

  override end(): void {
    super.end()
    this.signs.clear()
  }

  /** The replica has from now on what the server has now. */
  replicate(): void {
    this.replica = copyOf(this.content)
  }

  /** FLUSHALL, by somebody. */
  flush(): void {
    this.content = empty()
  }

  /** It ends without having saved anything, and begins again. */
  restart(): void {
    this.content = empty()
    this.runs++
  }

  /** The replica takes over: what came since it was last replicated is lost. */
  promote(): void {
    this.content = copyOf(this.replica)
    this.runs++
  }

  private get now(): number {
    return this.scheduler.now + this.jumpedMs
  }

  private stored(id: string): Stored | undefined {
    const found = this.content.sessions.get(id)
    if (found === undefined || found.expiresAt > this.now) return found
    this.content.sessions.delete(id)
    return undefined
  }

  rowOf(id: string): Row | undefined {
    const found = this.stored(id)
    if (found?.owner === undefined || found.row === undefined) return undefined
    return { ...found.row, sessionId: id, owner: found.owner, fence: String(found.fence) }
  }

  rowsOf(hash: string): Row[] {
    const ids = this.content.index.get(hash) ?? []
    const rows = ids.map((id) => [id, this.rowOf(id)] as const)
    this.content.index.set(
      hash,
      rows.flatMap(([id, row]) => (row === undefined ? [] : [id])),
    )
    return rows.flatMap(([, row]) => (row === undefined ? [] : [row]))
  }

  /** As `save.lua`. */
  save(owner: string, writes: readonly SessionWrite[]): Refusal[] {
    return writes.flatMap((write, index) => {
      const refused = this.write(owner, write)
      return refused === undefined ? [] : [{ ...refused, index }]
    })
  }

  private write(owner: string, write: SessionWrite): Refused | undefined {
    const { sessionId: id, hash, fence, what, newOwner } = write
    const known = this.stored(id)
    const last = known?.fence ?? 0
    const isOthers = known?.owner !== undefined && known.owner !== owner && known.owner !== newOwner
    if (last > fence || (isOthers && (last === fence || what === 'gone')))
      return { why: known?.row?.hasSocket === true ? 'moved' : 'other' }
    if (what === 'gone') {
      this.content.sessions.delete(id)
      this.content.index.set(hash, without(this.content.index.get(hash), id))
      return undefined
    }
    if (what === 'part' && last < fence) return { why: 'missing' }
    if (known !== undefined && isUnseen(known, owner, write)) {
      const row = known.row && { ...known.row, hasSocket: false }
      this.content.sessions.set(id, { ...known, owner, fence, row, origin: '' })
      return { why: 'earlier', state: known.state, lastEntry: known.log.at(-1) ?? '' }
    }
    const before = what === 'part' ? known : { origin: this.origin, row: known?.row, state: known?.state, log: [] }
    if (what !== 'part') this.content.index.set(hash, [...without(this.content.index.get(hash), id), id])
    this.content.sessions.set(id, this.written(write, owner, before, known))
    return undefined
  }

  private written(
    { fence, row, state, newOwner, ttlMs, log, what }: SessionWrite,
    owner: string,
    before: Before | undefined,
    known: Stored | undefined,
  ): Stored {
    const kept = log.isWhole ? [] : (before?.log ?? [])
    return {
      owner: newOwner ?? (what === 'part' ? known?.owner : owner),
      fence: what === 'part' ? (known?.fence ?? fence) : fence,
      origin: before?.origin ?? this.origin,
      row: row === undefined ? before?.row : { ...before?.row, ...row },
      state: row === undefined ? (before?.state ?? '') : state,
      log: [...kept.slice(log.dropped), ...log.added],
      expiresAt: ttlMs === undefined ? (known?.expiresAt ?? Number.POSITIVE_INFINITY) : this.now + ttlMs,
    }
  }

  /** As `claim.lua`. */
  claim(owner: string, id: string, fence: string, by?: Claiming): Copy | 'gone' | 'unsure' | undefined {
    const known = this.stored(id)
    if (String(known?.fence) !== fence || known === undefined) return undefined
    const isWhole = known.origin === this.origin
    if (by !== undefined && !isWhole && by.origin !== this.origin) return 'unsure'
    if (isWhole && by?.origin === this.origin) return undefined
    const next = Math.max(known.fence + 1, isWhole ? 0 : (by?.freshFence ?? 0))
    if (known.state === '') {
      const tomb = { owner: undefined, fence: next, origin: this.origin, row: undefined, state: '', log: [] }
      this.content.sessions.set(id, { ...tomb, expiresAt: this.now + tombMs })
      return 'gone'
    }
    const row = known.row && { ...known.row, hasSocket: false, isUnsure: false }
    this.content.sessions.set(id, { ...known, owner, fence: next, row })
    return { fence: next, state: known.state, isWhole, entries: known.log }
  }

  /** As `renew.lua`. */
  renew(owner: string, sessions: readonly { sessionId: string; fence: number; ttlMs: number }[]): Refusal[] {
    return sessions.flatMap(({ sessionId, fence, ttlMs }, index) => {
      const known = this.stored(sessionId)
      if (known !== undefined && known.fence === fence && known.owner === owner) {
        this.content.sessions.set(sessionId, { ...known, expiresAt: this.now + ttlMs })
        return []
      }
      const isEarlier = known === undefined || known.fence < fence
      const why = isEarlier ? 'missing' : known.row?.hasSocket === true ? 'moved' : 'other'
      return [{ index, why }] as const
    })
  }

  has(id: string, hash: string): boolean {
    return this.stored(id) !== undefined && (this.content.index.get(hash) ?? []).includes(id)
  }

  post(to: string, batch: string): void {
    const letters = this.content.inboxes.get(to) ?? []
    this.content.inboxes.set(to, [...letters, { id: ++this.lastLetter, batch }])
    this.listeners.get(to)?.()
  }

  /** What came after a letter; who reads has no need of those before. */
  lettersAfter(to: string, id: number): readonly Letter[] {
    return (this.content.inboxes.get(to) ?? []).filter((letter) => letter.id > id)
  }

  trim(to: string, id: number): void {
    this.content.inboxes.set(to, [...this.lettersAfter(to, id)])
  }

  /** What came after a letter. If that is nothing, the reader waits from then on, and misses nothing: `next` resolves. */
  readLetters(to: string, id: number): { letters: readonly Letter[]; next: Promise<void> } {
    const letters = this.lettersAfter(to, id)
    if (letters.length > 0) return { letters, next: Promise.resolve() }
    return { letters, next: new Promise((resolve) => this.listeners.set(to, resolve)) }
  }

  /** Nobody can go on with it: it is as if it had never been. */
  forget(owner: string, id: string, fence: number): void {
    const known = this.stored(id)
    if (known === undefined || known.fence > fence || (known.owner !== undefined && known.owner !== owner)) return
    this.content.sessions.delete(id)
  }

  /** As `nodes.lua`. */
  beat(node: string, ms: number): Signs {
    for (const [other, at] of this.content.alive) if (at <= this.now - ms) this.content.alive.delete(other)
    const isNew = !this.content.alive.has(node)
    this.content.alive.set(node, Math.floor(this.now))
    return { isNew, at: Math.floor(this.now), listed: [...this.content.alive] }
  }

  leave(node: string): void {
    this.content.alive.delete(node)
  }

  /** As `written.lua`. */
  say(node: string, word: string, { isForced = false, serves = false, dead = [] }: Saying): Map<string, string> {
    const { words } = this.content
    if (word !== '' && (isForced || words.get(node) !== 'gone')) words.set(node, word)
    if (word !== '' && serves) words.delete(maker)
    for (const other of dead) if (words.get(other) !== word) words.set(other, 'gone')
    return new Map(words)
  }

  /** As `said.lua`. */
  said(node: string): string | null {
    return this.content.words.get(node) === this.origin ? this.origin : null
  }

  /** As `maker.lua`. */
  maker(node: string, dead: string | undefined): string | undefined {
    const { words } = this.content
    if (words.size === 0 || (dead !== undefined && words.get(maker) === dead)) words.set(maker, node)
    return words.get(maker)
  }

  made(): void {
    this.content.words.delete(maker)
  }

  masters(): Master[] {
    return [{ name: '', origin: this.origin, marker }]
  }
}

/** An earlier owner wrote it, or had, and this one has not yet been shown that. */
function isUnseen({ owner, fence, origin }: Stored, by: string, write: SessionWrite): boolean {
  const isEarlier = owner !== undefined && owner !== by && fence < write.fence
  return isEarlier || (write.what === 'all' && origin === '')
}

function without(ids: readonly string[] = [], id: string): string[] {
  return ids.filter((each) => each !== id)
}

/** One of this many reads forgets what was read. */
const trimEvery = 32
/** How often a reader without messages looks up, in ms. */
const idleMs = 1_500

export interface RedisPorts {
  readonly directory: Directory
  readonly copies: Copies
  readonly post: Post
}

/** What one node has of the server. `way`: for its commands; `reading`: the connection on which it waits for letters. */
export function redisPorts(world: RedisWorld, node: string, host: Host, way: Way, reading: Way): RedisPorts {
  return {
    directory: {
      row: (id) => way.send(() => world.rowOf(id)),
      rowsOf: (hash) => way.send(() => world.rowsOf(hash)),
      claim: (id, fence, by) => way.send(() => world.claim(node, id, fence, by)),
      forget: (id, fence) =>
        way.send(() => {
          world.forget(node, id, fence)
        }),
      masters: () => way.send(() => world.masters()),
      masterOf: () => '',
      say: (_, word, how = {}) => way.send(() => world.say(node, word, how)),
      said: () => way.send(() => world.said(node)),
      maker: (_, dead) => way.send(() => world.maker(node, dead)),
      made: () => way.send(() => world.made()),
    },
    copies: {
      partOf: () => '',
      save: (writes) => way.send(() => world.save(node, writes)),
      renew: (sessions) => way.send(() => world.renew(node, sessions)),
      areThere: (sessions) => way.send(() => sessions.every(({ sessionId, hash }) => world.has(sessionId, hash))),
      isConnected: way.isUp,
    },
    post: createPost(world, node, host, way, reading),
  }
}

function createPost(world: RedisWorld, node: string, host: Host, way: Way, reading: Way): Post {
  let lastId = 0
  let reads = 0
  let isStopped = false

  async function read({ onRead, onBatch }: Reader): Promise<void> {
    while (!isStopped) {
      const from = lastId
      try {
        const { letters, next } = await reading.send(() => world.readLetters(node, from))
        if (letters.length === 0) await Promise.race([host.timers.sleep(idleMs), next])
        await onRead()
        const last = letters.at(-1)
        if (last === undefined || from !== lastId) continue
        lastId = last.id
        for (const { batch } of letters) onBatch(Buffer.from(batch))
        if (++reads % trimEvery === 0) way.send(() => world.trim(node, lastId)).catch(() => {})
      } catch {
        await host.timers.sleep(100)
      }
    }
  }

  return {
    send: (to, batch) => way.send(() => world.post(to, batch)),
    listen: (reader) => void read(reader),
    readAgain() {
      lastId = 0
    },
    beat: (ms) => way.send(() => world.beat(node, ms)),
    async stop() {
      isStopped = true
      await way.send(() => world.leave(node)).catch(() => {})
    },
  }
}
