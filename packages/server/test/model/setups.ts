import { alice, bob, carol, durations, ringMs } from '../../src/call/call.fixture.ts'
import type { Setup } from './world.ts'

const rules = { durations, ringTimeoutMs: ringMs, maxRinging: 5, busy: 'allow', nodes: ['one', 'two'] } as const

/** Two people with two sessions each, one on a phone and one without a device, at first on a node each. */
export const pair: Setup = { ...rules, people: [alice, bob], devices: ['phone', null] }

/** Three people with three sessions each, two of them on one device; who calls one of the others may call no more. */
export const trio: Setup = { ...rules, people: [alice, bob, carol], devices: ['phone', null, 'phone'], maxRinging: 1 }
