import type { Recording } from '../recording.ts'
import { againOf, unsavedOf } from './again.ts'
import { type Counts, countsOf } from './counts.ts'
import { checkDecided } from './decided.ts'
import { checkDatabase, factsOf } from './facts.ts'
import type { Report, Violation } from './findings.ts'
import { checkGroups } from './groups.ts'
import { checkHistories } from './histories.ts'
import { checkHooks } from './hooks.ts'
import { checkLosses, lossesOf } from './losses.ts'
import { checkNotices } from './notices.ts'
import { createPatience } from './patience.ts'
import { read } from './reading.ts'
import { checkRefusals } from './refusals.ts'
import { checkRelays } from './relays.ts'
import { checkRequests } from './requests.ts'
import { checkRings } from './rings.ts'
import { checkSaid } from './said.ts'
import { checkStreams } from './streams.ts'
import { checkTakes } from './takes.ts'
import { checkTold } from './told.ts'
import { checkTransfers } from './transfers.ts'
import { checkTurns } from './turns.ts'

export interface Verdict {
  readonly violations: readonly Violation[]
  readonly counts: Counts
}

/** Compares what everybody saw, what PostgreSQL holds, and what was acknowledged. */
export function check(recording: Recording): Verdict {
  const { header, traces, tracesApart = [], histories, hooks } = recording
  const violations: Violation[] = []
  const report: Report = (kind, text, { user, call, at } = {}) => {
    violations.push({
      kind,
      text,
      ...(user === undefined ? {} : { user }),
      ...(call === undefined ? {} : { call }),
      ...(at === undefined ? {} : { at }),
    })
  }
  const readings = traces.map(read)
  const readingsApart = tracesApart.map(read)
  const apart = new Set(header.apart)
  const patience = createPatience(header)
  const facts = factsOf(recording)
  const losses = lossesOf(readings, tracesApart, facts, header)
  const isUnsaved = unsavedOf(header)
  const mayComeAgain = againOf(readings, isUnsaved)
  for (const { node, code, at } of header.crashes) report('crash', `node ${node} ended with ${code}`, { at })
  for (const { node, line, at } of header.bugs ?? []) report('bug', `node ${node} logged ${line}`, { at })
  for (const text of header.stuck) report('stuck', text)
  checkDatabase(facts, report)
  checkStreams(readings, facts, apart, mayComeAgain, report)
  checkLosses(losses, report)
  checkRequests(readings, facts, header.startedAt, apart, report)
  checkRefusals(readings, facts, header, report)
  checkTold(readings, facts, report)
  checkRings(readings, facts, header.startedAt, report)
  checkNotices(readings, facts, header.startedAt, patience, report)
  checkRelays({ readings, facts, startedAt: header.startedAt, patience, apart, mayComeAgain, report })
  checkTransfers(readings, facts, header.startedAt, report)
  checkGroups(readings, facts, header.startedAt, patience, report)
  checkTurns(facts, header, patience, report)
  checkTakes({ readings: [...readings, ...readingsApart], facts, startedAt: header.startedAt, apart, patience, report })
  checkSaid({ readings, facts, startedAt: header.startedAt, patience, apart, isUnsaved, report })
  checkHistories(histories, facts, report)
  checkHooks(hooks, facts, report)
  if (header.decides === true) checkDecided(recording, report)
  return { violations, counts: countsOf(recording, readings, readingsApart, losses) }
}
