import type { Call } from '../call/call.ts'
import { callMark, readCall } from '../call/read.ts'
import { isLast, type Push } from '../ports/push.ts'
import type { Sink } from '../ports/sessions.ts'
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
  /** Another node has told everybody of a call up to a version. */
  readonly onTold: (call: string, version: number) => void
  /** Another node took something that this one owned. */
  readonly onTaken: () => void
  /** The store may have been emptied. */
  readonly onLook: () => void
}

/** What other nodes ask for. */
export interface Requests {
  answer(frame: Frame, from: string): unknown
  /** What is answered instead where the save that followed was refused: a session turned out to be another node's. */
  answerOfRefused(frame: Frame, answer: unknown): unknown
  /** Does something with a session of this node, or with one that nobody knows. */
  doHere(operation: Operation, sessionId: string, args: readonly unknown[]): unknown
}

export function createRequests(options: RequestsOptions): Requests {
  const { node, table, owner, finals, onCall, onTold, onTaken, onLook } = options
  const operations = createOperations(table)

  function answer(frame: Frame, from: string): unknown {
    switch (frame[0]) {
      case 'relay': {
        const [, , id] = frame
        return owner.isHere(id) ? table.append(id, pushIn(frame)) : doIfOwn('append', id, [pushIn(frame)])
      }
      case 'do': {
        const [, operation, id, given] = frame
        // Who asks hears nothing before it is saved, and asks again where it was not.
        const args = operation === 'append' ? [saveFirst(given[0] as Push)] : given
        const done = owner.isHere(id) ? doHere(operation, id, args) : doIfOwn(operation, id, args)
        // It may have turned out meanwhile that another node has the session: then it was done to nobody.
        return done instanceof Promise ? done.then((answer) => (owner.isHere(id) ? answer : notHere)) : done
      }
      case 'move': {
        const [, call, from, to, ...how] = frame
        return owner.isHere(from) && owner.isHere(to) ? table.move(call, from, to, ...how) : notHere
      }
      case 'rung': {
        const [, participant, push, except, ids] = frame
        const missed = () => ids.filter((id) => !owner.isHere(id))
        const tell = () => {
          table.appendRung(participant, push, except)
          return isLast(push) ? finals.passOn(participant, push).then(missed) : missed()
        }
        return missed().length === 0 ? tell() : takeOver(missed()).then(tell)
      }
      case 'owing':
        return table.owing(frame[1])
      case 'collect':
        return owner.isHere(frame[1].sessionId) ? finals.collectFinals(frame[1]) : notHere
      case 'yield': {
        const [, id, stamp, identity, turn, seq] = frame
        // One that is no number comes as null.
        return owner.handOff(from, id, stamp, identity && { identity, turn, seq: seq ?? undefined })
      }
      case 'find':
        return find(frame[1])
      case 'probe':
        return table.sinkOf(frame[1])?.probe() ?? false
      case 'retire':
        return retire(frame[1])
      case 'close': {
        const [, id, code, reason] = frame
        return table.sinkOf(id)?.close(code as Parameters<Sink['close']>[0], reason)
      }
      case 'call':
        return hearOfCall(frame[1], frame[2])
      case 'told':
        return onTold(frame[1], frame[2])
      case 'inherit':
        return finals.inherit(frame[1], frame[2], frame[3])
      case 'taken':
        return onTaken()
      case 'look':
        return onLook()
      case 'heard':
        return undefined
    }
  }

  /** It was done only to what is still here. */
  function answerOfRefused(frame: Frame, answer: unknown): unknown {
    switch (frame[0]) {
      case 'relay':
      case 'do':
        return owner.isHere(frame[2]) ? answer : notHere
      case 'move':
        return owner.isHere(frame[2]) && owner.isHere(frame[3]) ? answer : notHere
      case 'rung':
        return frame[4].filter((id) => !owner.isHere(id))
      case 'collect':
        return owner.isHere(frame[1].sessionId) ? answer : notHere
      case 'find':
        return owner.isHere(frame[1])
      default:
        return answer
    }
  }

  /** It was given them, or has forgotten them; of those that it does not get whoever asks looks again. */
  async function takeOver(sessionIds: readonly string[]): Promise<void> {
    sessionIds.forEach(owner.forgetRoute)
    await Promise.allSettled(sessionIds.map(owner.ownerOf))
  }

  function find(id: string): boolean {
    const session = owner.isHere(id) ? table.get(id) : undefined
    if (session !== undefined) table.changes.tear(session)
    return session !== undefined
  }

  async function retire(id: string): Promise<boolean> {
    await table.sinkOf(id)?.retire()
    return true
  }

  function hearOfCall(mark: string, text: unknown): void {
    const call = mark === callMark ? readCall(text) : undefined
    // It is a hint: whoever needs the call reads it.
    if (call !== undefined) onCall(call)
  }

  function doHere(operation: Operation, id: string, args: readonly unknown[]): unknown {
    const done = (operations[operation] as (id: string, ...args: readonly unknown[]) => unknown)(id, ...args)
    return operation === 'append' && isLast(args[0] as Push) ? passOn(id, args[0] as Push, done) : done
  }

  function passOn(id: string, push: Push, done: unknown): unknown {
    const session = table.get(id)
    // Who may come back to it finds it there.
    if (session === undefined || isOpen(session) || mayResume(session)) return done
    return finals.passOn(session.identity.participant, push).then(() => done)
  }

  /** Another node takes this one for the owner: it may be, and have forgotten it. */
  async function doIfOwn(operation: Operation, id: string, args: readonly unknown[]): Promise<unknown> {
    owner.forgetRoute(id)
    return (await owner.ownerOf(id)) === node ? doHere(operation, id, args) : notHere
  }

  return { answer, answerOfRefused, doHere }
}
