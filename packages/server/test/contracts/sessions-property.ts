import { describe, test } from 'bun:test'
import { isLong } from '@ringwire/testkit/long'
import fc from 'fast-check'
import type { SessionsHarness } from './session-parts.ts'
import { placeMoves, walkPlace } from './session-place-walk.ts'
import { sessionMoves, walkSession } from './session-walk.ts'

const walks = isLong ? 120 : 30
/** Long enough that logs are trimmed, windows pass and sessions begin anew. */
const longest = 120

/** What holds in every order of events [RES1, RES2, PLACE2]. */
export function registerSessionProperties(given: () => SessionsHarness): void {
  describe('in any order of pushes, losses, proofs and returns', () => {
    test('[RES1] [RES2] no numbered push is lost, doubled or out of order, and no resume is answered that is not whole', async () => {
      const total = { resumed: 0, refused: 0, pushed: 0 }
      const property = fc.asyncProperty(fc.array(sessionMoves, { maxLength: longest, size: 'max' }), async (moves) => {
        const walked = await walkSession(given(), moves)
        for (const key of ['resumed', 'refused', 'pushed'] as const) total[key] += walked[key]
      })
      await fc.assert(property, { numRuns: walks })
      console.log(`${walks} walks of a session: ${JSON.stringify(total)}`)
    }, 480_000)

    test('[PLACE2] [RES2] of a call nothing is lost, whoever takes the place, and each session hears it in order', async () => {
      const total = { taken: 0, resumed: 0, refused: 0, pushed: 0 }
      const property = fc.asyncProperty(fc.array(placeMoves, { maxLength: longest, size: 'max' }), async (moves) => {
        const walked = await walkPlace(given(), moves)
        for (const key of ['taken', 'resumed', 'refused', 'pushed'] as const) total[key] += walked[key]
      })
      await fc.assert(property, { numRuns: walks })
      console.log(`${walks} walks of a place: ${JSON.stringify(total)}`)
    }, 480_000)
  })
}
