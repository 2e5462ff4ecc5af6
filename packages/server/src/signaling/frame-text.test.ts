import { expect, test } from 'bun:test'
import { textOfFrame } from './frame-text.ts'

test('[ENV1] a binary frame is read as text, and one that is no UTF-8 is a message that is no envelope', () => {
  expect(textOfFrame(new TextEncoder().encode('{"event":"é"}'))).toBe('{"event":"é"}')
  const unreadable = textOfFrame(new Uint8Array([0xc3, 0x28]))
  expect(unreadable).toBeString()
  expect(() => JSON.parse(unreadable ?? '{}')).toThrow()
})
