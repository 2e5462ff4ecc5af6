import type { Call } from '../call/call.ts'
import { callMark, readCall } from '../call/read.ts'
import { isLast, type Push } from '../ports/push.ts'
import type { SessionStep, Sink } from '../ports/sessions.ts'
import { saveFirst } from '../session/places.ts'
import { isOpen, mayResume } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Finals } from './finals.ts'
import { type Frame, notHere, pushIn } from './frames.ts'
import { createOperations, type Operation } from './operations.ts'
import type { Owner } from './owner.ts'

export interface RequestsOptions {
  readonly node: string
  readonly table: SessionTable
  readonly owner: Owner
  readonly finals: Omit<Finals, 'owing'>
  /** What another node has just committed to a call. */
  readonly onCall: (call: Call) => void
  /** Another node has delivered the steps of a call up to a version. */
  readonly onTold: (call: string, version: number) => void
  /** Another node took something that this one owned. */
  readonly onTaken: () => void
  /** The store may have been emptied. */
  readonly onLook: () => void
}

/** What other nodes ask for. */
export interface Requests {
  answer(frame: Frame, from: string): unknown
  /** The answer after a refused save: some session turned out to belong to another node. */
  answerOfRefused(frame: Frame, answer: unknown): unknown
  /** Does something with a session of this node, or with a session that no node knows. */
  doHere(operation: Operation, sessionId: string, args: readonly unknown[]): unknown
}

type FrameOf<N extends Frame[0]> = Extract<Frame, readonly [N, ...unknown[]]>

export function createRequests(options: RequestsOptions): Requests {
  const { table, owner, finals } = options
  const { doHere, doIfOwn } = createDoes(options)

  function answer(frame: Frame, from: string): unknown {
    switch (frame[0]) {
      case 'relay': {
        const [, , id] = frame
        return owner.isHere(id) ? table.append(id, pushIn(frame)) : doIfOwn('append', id, [pushIn(frame)])
      }
      case 'do':
        return doFor(frame)
      case 'move': {
        const [, call, from, to, ...how] = frame
        return owner.isHere(from) && owner.isHere(to) ? table.move(call, from, to, ...how) : notHere
      }
      case 'rung':
        return appendRung(frame)
      case 'owing':
        return table.owing(frame[1])
      case 'collect':
        return owner.isHere(frame[1].sessionId) ? finals.collectFinals(frame[1]) : notHere
      case 'inherit':
        return finals.inherit(frame[1], frame[2], frame[3])
      case 'yield': {
        const [, id, stamp, identity, turn, seq] = frame
        // An undefined number comes as null.
        return owner.handOff(from, id, stamp, identity && { identity, turn, seq: seq ?? undefined })
      }
      case 'find':
        return find(frame[1])
      case 'probe':
      case 'retire':
      case 'close':
        return withSocket(table, frame)
      default:
        return hear(options, frame)
    }
  }

  function doFor([, operation, id, given]: FrameOf<'do'>): unknown {
    // The asking node hears nothing before it is saved, and asks again if it was not.
    const args = operation === 'append' ? [saveFirst(given[0] as Push)] : given
    const done = owner.isHere(id) ? doHere(operation, id, args) : doIfOwn(operation, id, args)
    // It may have turned out meanwhile that another node has the session: then nothing was done to that session.
    return done instanceof Promise ? done.then((answer) => (owner.isHere(id) ? answer : notHere)) : done
  }

  function appendRung([, participant, push, except, ids]: FrameOf<'rung'>): unknown {
    const missed = () => ids.filter((id) => !owner.isHere(id))
    const append = () => {
      table.appendRung(participant, push, except)
      return isLast(push) ? finals.passOn(participant, push).then(missed) : missed()
    }
    return missed().length === 0 ? append() : takeOver(missed()).then(append)
  }

  /** This node was given the sessions, or has forgotten them. The asking node looks again for those that it does not get. */
  async function takeOver(sessionIds: readonly string[]): Promise<void> {
    sessionIds.forEach(owner.forgetRoute)
    await Promise.allSettled(sessionIds.map(owner.ownerOf))
  }

  function find(id: string): boolean {
    const session = owner.isHere(id) ? table.get(id) : undefined
    if (session !== undefined) table.changes.tear(session)
    return session !== undefined
  }

  return { answer, answerOfRefused: (frame, answer) => answerOfRefused(frame, answer, owner.isHere), doHere }
}

/** Operations with sessions of this node. */
function createDoes({ node, table, owner, finals }: RequestsOptions) {
  const operations = createOperations(table)

  function doHere(operation: Operation, id: string, args: readonly unknown[]): unknown {
    const done = (operations[operation] as (id: string, ...args: readonly unknown[]) => unknown)(id, ...args)
    const last = lastOf(operation, args)
    return last === undefined ? done : passOn(id, last, done)
  }

  function passOn(id: string, push: Push, done: unknown): unknown {
    const session = table.get(id)
    // A client that may come back to it finds the push there.
    if (session === undefined || isOpen(session) || mayResume(session)) return done
    return finals.passOn(session.identity.participant, push).then(() => done)
  }

  /** Another node takes this one for the owner: it may be, and have forgotten it. */
  async function doIfOwn(operation: Operation, id: string, args: readonly unknown[]): Promise<unknown> {
    owner.forgetRoute(id)
    return (await owner.ownerOf(id)) === node ? doHere(operation, id, args) : notHere
  }

  return { doHere, doIfOwn }
}

/** The frame only took effect on the sessions that are still here. */
function answerOfRefused(frame: Frame, answer: unknown, isHere: (sessionId: string) => boolean): unknown {
  switch (frame[0]) {
    case 'relay':
    case 'do':
      return isHere(frame[2]) ? answer : notHere
    case 'move':
      return isHere(frame[2]) && isHere(frame[3]) ? answer : notHere
    case 'rung':
      return frame[4].filter((id) => !isHere(id))
    case 'collect':
      return isHere(frame[1].sessionId) ? answer : notHere
    case 'find':
      return isHere(frame[1])
    default:
      return answer
  }
}

function withSocket(table: SessionTable, frame: FrameOf<'probe' | 'retire' | 'close'>): unknown {
  const sink = table.sinkOf(frame[1])
  switch (frame[0]) {
    case 'probe':
      return sink?.probe() ?? false
    case 'retire':
      return retire(sink)
    case 'close':
      return sink?.close(frame[2] as Parameters<Sink['close']>[0], frame[3])
  }
}

async function retire(sink: Sink | undefined): Promise<boolean> {
  await sink?.retire()
  return true
}

type News = 'call' | 'told' | 'taken' | 'look' | 'heard'

function hear({ onCall, onTold, onTaken, onLook }: RequestsOptions, frame: FrameOf<News>): void {
  switch (frame[0]) {
    case 'call': {
      const call = frame[1] === callMark ? readCall(frame[2]) : undefined
      // It is a hint: a node that needs the call reads it.
      if (call !== undefined) onCall(call)
      return
    }
    case 'told':
      onTold(frame[1], frame[2])
      return
    case 'taken':
      onTaken()
      return
    case 'look':
      onLook()
      return
    case 'heard':
      return
  }
}

/** The push that says how a call ended, if the operation brings one. */
function lastOf(operation: Operation, [about]: readonly unknown[]): Push | undefined {
  if (operation === 'append') return isLast(about as Push) ? (about as Push) : undefined
  return operation === 'apply' ? (about as SessionStep).pushes?.find(isLast) : undefined
}
