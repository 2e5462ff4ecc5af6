import { allowedActions } from '@ringwire/protocol/rest'
import type { SessionClaims } from '../../src/auth/tokens.ts'
import type { Timers } from '../../src/ports/clock.ts'
import { capabilities, Habits } from '../chaos/habits.ts'
import { Person, role } from '../chaos/person.ts'
import { type LineEvents, Phone, type PhoneOptions } from '../chaos/phone.ts'
import type { Trace } from '../chaos/recording.ts'
import type { Random } from '../fuzz/random.ts'
import { BasePhone } from './base-phone.ts'
import { type Cluster, startedAt } from './cluster.ts'
import { groupNames } from './groups.ts'
import { uuidOf } from './names.ts'
import { connect } from './network.ts'
import type { Scheduler } from './scheduler.ts'

/** People are slower than those of chaos by this factor: a thousand calm worlds show more than a few busy ones. */
const pace = 2
/** At least this number of people have one extended phone each. Each of the others may have one to three phones of both kinds. */
const fewestPlain = 2

export interface GuestsOptions {
  readonly scheduler: Scheduler
  readonly cluster: Cluster
  /** Of nodes. */
  readonly count: number
  /** Of people. */
  readonly names: readonly string[]
  readonly random: Random
  readonly timers: Timers
  readonly at: () => number
  /** What their habits are drawn from; undefined: they only call and answer. */
  readonly habits?: Random | undefined
  /** They work at a desk, and do what is done there, too. */
  readonly isDesk: boolean
}

/** One phone and who uses it: somebody with two phones is two who do not talk to each other. */
export interface Guest {
  readonly phone: Pick<Phone, 'connect' | 'tick' | 'lose' | 'online' | 'settle'>
  readonly person: Person
  /** The name of the person and of the phone. */
  readonly name: string
  readonly trace: Trace
  readonly isBase: boolean
  /** With other phones, or with a base client. */
  readonly isApart: boolean
}

export function invite(options: GuestsOptions): Guest[] {
  const { names, random } = options
  return names.flatMap((userId, i) => {
    const others = names.filter((name) => name !== userId)
    const own = random.fork()
    const isApart = i >= fewestPlain && own.chance(0.5)
    const kinds = isApart ? Array.from({ length: 1 + own.int(3) }, () => own.chance(0.5)) : [false]
    return kinds.map((isBase, nth) =>
      guestOf({ ...options, random: own.fork() }, { userId, others, isApart, isBase, nth }),
    )
  })
}

interface Who {
  readonly userId: string
  readonly others: readonly string[]
  readonly isApart: boolean
  readonly isBase: boolean
  /** Which of the phones of this person. */
  readonly nth: number
}

function guestOf({ scheduler, cluster, count, random, timers, at, habits, isDesk }: GuestsOptions, who: Who): Guest {
  const { userId, others, isApart, isBase, nth } = who
  const name = `${userId}, phone ${nth}`
  const [ways, wires, uuids] = [random.fork(), random.fork(), random.fork()]
  const claims = claimsOf(userId, name)
  const options: Omit<PhoneOptions, 'onFresh'> = {
    ...{ userId, timers, at, random: random.fork(), ...(habits !== undefined && { can: capabilities }) },
    dial(query: string, events: LineEvents) {
      const node = ways.int(count)
      return { node, line: connect(scheduler, wires, cluster.runs[node], claims, query, events) }
    },
    onPush: (frame) => person.onPush(frame),
  }
  const extended = isBase ? undefined : new Phone({ ...options, onFresh: (frame) => person.onFresh(frame) })
  const phone = extended ?? new BasePhone({ ...options, now: () => cluster.database.now })
  const newUuid = () => uuidOf(uuids)
  const person: Person = new Person(phone, {
    userId,
    others,
    random: random.fork(),
    timers,
    newUuid,
    pace,
    hasOthers: isApart,
    ...(habits !== undefined && !isBase && { habits: habitsOf(habits.fork(), isApart, isDesk) }),
  })
  return { phone, person, name, trace: phone.trace, isBase, isApart }
}

function habitsOf(random: Random, takes: boolean, isDesk: boolean): Habits {
  return new Habits({ random, role, groups: groupNames(isDesk), takes, isDesk })
}

function claimsOf(userId: string, deviceId: string): SessionClaims {
  return {
    participant: { product: 'shop', role, userId },
    displayName: userId,
    contextType: 'simulation',
    contextId: '1',
    allowedPeerRoles: [role],
    allowedActions,
    deviceId,
    appVersion: null,
    issuedAt: startedAt,
    expiresAt: startedAt + 86_400_000,
    tokenId: deviceId,
    key: null,
  }
}
