import { afterAll, beforeAll, describe } from 'bun:test'
import { type OpenSessions, resumeWindowMs, type SessionsHarness, windowMs } from './session-parts.ts'
import { registerCallRules, registerLaterRules } from './sessions-calls.ts'
import { registerCapabilityRules } from './sessions-capabilities.ts'
import { registerDeliveryRules } from './sessions-delivery.ts'
import { registerClosedRules, registerLogRules } from './sessions-log.ts'
import { registerPeerRules } from './sessions-peers.ts'
import { registerPlaceRules } from './sessions-places.ts'
import { registerSessionProperties } from './sessions-property.ts'
import { registerResumeRules, registerSeenRingRules } from './sessions-resume.ts'

/** What every adapter of Sessions guarantees, to base and to extended sessions. */
export function registerSessionsContract(name: string, open: OpenSessions): void {
  describe(`${name}: Sessions`, () => {
    let harness: SessionsHarness
    const given = () => harness
    beforeAll(async () => {
      harness = await open({ windowMs, resumeWindowMs })
    })
    afterAll(() => harness.close())

    registerDeliveryRules(given)
    registerCallRules(given)
    registerLaterRules(given)
    registerClosedRules(given)
    registerPeerRules(given)
    registerSeenRingRules(given)
    registerLogRules(given)
    registerPlaceRules(given)
    registerResumeRules(given)
    registerCapabilityRules(given)
    registerSessionProperties(given)
  })
}
