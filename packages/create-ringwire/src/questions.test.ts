import { expect, test } from 'bun:test'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { Interrupted, openQuestions } from './questions.mjs'

/** Questions whose answers are typed into a pipe. */
function open(typed = '') {
  const [input, output] = [new PassThrough(), new PassThrough()]
  input.write(typed)
  return { ...openQuestions({ input, output }), input, output }
}

test('an empty line takes what is offered, and another one is trimmed', async () => {
  const { text, close } = open('\n  shop \n')
  expect(await text('Folder', 'my-app')).toBe('my-app')
  expect(await text('Product', 'my-app')).toBe('shop')
  close()
})

test('a wrong answer is asked for again, with what is wrong about it', async () => {
  const asked = open('a b\nab\n')
  const check = (answer: string) => {
    if (answer.includes(' ')) throw new Error('No spaces.')
    return answer
  }
  expect(await asked.text('Product', 'x', check)).toBe('ab')
  asked.close()
  asked.output.end()
  expect(await text(asked.output)).toBe('Product (x)   No spaces.\nProduct (x) ')
})

test('a choice may be shortened, and the first one is offered', async () => {
  const { choice, close } = open('\np\nREACT\nvue\nplain\n')
  const pages = ['react', 'plain']
  expect(await choice('Page', pages)).toBe('react')
  expect(await choice('Page', pages)).toBe('plain')
  expect(await choice('Page', pages)).toBe('react')
  expect(await choice('Page', pages)).toBe('plain')
  close()
})

test('yes is offered, and only y and n are taken', async () => {
  const { yes, close } = open('\nn\nmaybe\nNo\nYES\n')
  expect([await yes('?'), await yes('?'), await yes('?'), await yes('?')]).toEqual([true, false, false, true])
  close()
})

test('where the input ends, the question that waits is interrupted, and so is each one after it', async () => {
  const { text, input } = open()
  const failure = (answer: Promise<string>) => answer.catch((error: unknown) => error)
  const waiting = failure(text('Folder', 'my-app'))
  input.end()
  for (const error of [await waiting, await failure(text('Product', 'x'))]) {
    expect(error).toBeInstanceOf(Interrupted)
    expect(error).toMatchObject({ code: 1, message: 'The answers ended; give --yes to be asked nothing.' })
  }
})
