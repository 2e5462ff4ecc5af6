import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readReason } from './events/call.ts'

test('[END2] a reason becomes lower case, and runs of other characters become one _', () => {
  for (const [given, reason] of [
    ['User Busy', 'user_busy'],
    ['user_busy', 'user_busy'],
    ['BUSY', 'busy'],
    ['a-b', 'a_b'],
    ['network: lost!', 'network_lost_'],
    ['a  \n b', 'a_b'],
    ['Größe 📞', 'gr_e_'],
    ['x'.repeat(65), 'x'.repeat(64)],
    [`${'x'.repeat(63)} y`, `${'x'.repeat(63)}_`],
  ]) {
    expect(readReason(given)).toBe(reason as string)
  }
})

test('[END1] what is no text, or empty, is none', () => {
  for (const given of [undefined, null, '', 7, {}, ['busy'], true]) expect(readReason(given)).toBeNull()
})

test('[END2] whatever comes, a reason matches [a-z0-9_]{1,64}, and stays when it is read again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (given) => {
      const reason = readReason(given)
      if (reason === null) return expect(given).toBe('')
      expect(reason).toMatch(/^[a-z0-9_]{1,64}$/)
      expect(readReason(reason)).toBe(reason)
    }),
  )
})
