/** `ringwire vapid`: the pair of keys by which push services of browsers know this service [PUSH2]. */
import type { Command } from 'commander'
import { makeVapidKey } from '../config/push-keys.ts'
import { printJson, type Surroundings } from './command.ts'

export function addVapidCommand(program: Command, surroundings: Surroundings): void {
  program
    .command('vapid')
    .description(
      'Make a pair of keys for Web Push, as settings to copy. Nothing is stored; each run makes another pair.',
    )
    .option('--json', 'print JSON instead of settings')
    .action(({ json }: { json?: boolean }) => print(surroundings, json === true))
}

function print(surroundings: Surroundings, isJson: boolean): void {
  const { privateKey, publicKey } = makeVapidKey()
  if (isJson) {
    printJson(surroundings, { private_key: privateKey, public_key: publicKey })
    return
  }
  surroundings.out(`RINGWIRE_VAPID_PRIVATE_KEY=${privateKey}\nRINGWIRE_VAPID_PUBLIC_KEY=${publicKey}\n`)
  surroundings.err('The private key is a secret; pages subscribe with the public one (applicationServerKey).\n')
}
