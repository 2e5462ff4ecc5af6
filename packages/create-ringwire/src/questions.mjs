/**
 * The questions, one line each; an empty line takes what is offered.
 *
 *   openQuestions({ input, output })  → { text(question, offered, check), choice(question, choices), yes(question), close() }
 *   Interrupted                       what they reject with after Ctrl-C, and where the input ends
 */
import { createInterface } from 'node:readline'

/** `code` is what the process ends with. */
export class Interrupted extends Error {
  constructor(message, code) {
    super(message)
    this.code = code
  }
}

export function openQuestions({ input, output }) {
  const lines = createInterface({ input, output, terminal: input.isTTY === true && output.isTTY === true })
  const typed = []
  let waiting
  let over

  const end = (error) => {
    over ??= error
    waiting?.reject(over)
    lines.close()
  }
  // Readline ends without a word otherwise, and the answer never comes.
  lines.on('SIGINT', () => end(new Interrupted('', 130)))
  lines.on('close', () => end(new Interrupted('The answers ended; give --yes to be asked nothing.', 1)))
  // A pipe may bring several answers at once, and before their questions.
  lines.on('line', (line) => {
    if (waiting === undefined) return typed.push(line)
    waiting.resolve(line)
    waiting = undefined
  })

  async function ask(question) {
    if (typed.length === 0 && over !== undefined) throw over
    if (over === undefined) {
      lines.setPrompt(`${question} `)
      lines.prompt()
    }
    const line =
      typed.shift() ??
      (await new Promise((resolve, reject) => {
        waiting = { resolve, reject }
      }))
    return line.trim()
  }

  /** `read` gives the answer, or throws the text to show before the question comes again. */
  async function until(question, read) {
    for (;;) {
      const line = await ask(question)
      try {
        return read(line)
      } catch (error) {
        output.write(`  ${error.message}\n`)
      }
    }
  }

  return {
    text: (question, offered, check = (it) => it) =>
      until(`${question} (${offered})`, (line) => check(line === '' ? offered : line)),
    /** `choices` are names, the first of them offered; a name may be shortened. */
    choice: (question, choices) =>
      until(`${question} (${choices.join(' or ')}; Enter: ${choices[0]})`, (line) => {
        const found = choices.filter((it) => it.startsWith(line.toLowerCase()))
        if (found.length === 0) throw new Error(`Type ${choices.join(' or ')}.`)
        return found[0]
      }),
    yes: (question) =>
      until(`${question} (Y/n)`, (line) => {
        if (!/^(y(es)?|no?)?$/i.test(line)) throw new Error('Type y or n.')
        return !/^n/i.test(line)
      }),
    close: () => {
      over ??= new Interrupted('', 1)
      lines.close()
    },
  }
}
