/** `ringwire turn check`: whether the TURN servers take the credentials that clients are given [ICE1]. */
import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { createIceServers } from '../ice/ice-servers.ts'
import { tryTurn } from '../ice/turn-allocation.ts'
import { CommandFailure, exitCodes, printJson, printTable, requireConfig, type Surroundings } from './command.ts'

const answerMs = 5000

export function addTurnCommands(program: Command, surroundings: Surroundings): void {
  program
    .command('turn')
    .description('The TURN servers that clients get.')
    .command('check')
    .description('Ask each TURN server for an allocation, with credentials of each secret, as a client would.')
    .option('--json', 'print JSON instead of text')
    .action((options) => check(surroundings, options))
}

async function check(surroundings: Surroundings, { json }: { json?: boolean }): Promise<void> {
  const { config } = requireConfig(surroundings)
  if (config.turnUrls.length === 0) {
    throw new CommandFailure(exitCodes.failed, 'RINGWIRE_TURN_URLS is not set: clients get no TURN server.')
  }
  const asked = credentialsOf(config, surroundings.now())
  const answers = await Promise.all(
    config.turnUrls.flatMap((url) =>
      asked.map(async ({ secret, ...credentials }) => {
        const problem = await tryTurn(url, credentials, answerMs)
        return { url, secret, ok: problem === undefined, ...(problem !== undefined && { problem }) }
      }),
    ),
  )
  if (json) printJson(surroundings, answers)
  else {
    const rows = answers.map(({ url, secret, problem = 'good' }) => [url, secret, problem])
    printTable(surroundings, ['URL', 'CREDENTIALS', ''], rows, { good: 'good' })
  }
  const bad = answers.filter(({ ok }) => !ok).length
  if (bad > 0) throw new CommandFailure(exitCodes.failed, `${bad} of ${answers.length} failed.`)
}

/** Credentials as a client gets them; of the second secret, too, for it is the one that was, or is to be, the first. */
function credentialsOf(config: Config, now: number) {
  const nobody = { product: 'ringwire', role: 'check', userId: 'check' }
  return (config.turnSecrets ?? [null]).map((secret, index) => {
    const alone = { ...config, turnSecrets: secret === null ? null : [secret] }
    const { username = '', credential = '' } = createIceServers(alone)(nobody, now).at(-1) ?? {}
    const names = ['first secret', 'second secret'] as const
    return { secret: secret === null ? 'fixed' : (names[index] ?? ''), username, credential }
  })
}
