// Producer and consumer of `dyno tail` on the Node.js driver: one process, one event loop.
'use strict';

const common = require('./common.js');

function version(driver) {
  common.emit({
    contract: common.CONTRACT,
    language: 'javascript',
    driver,
    driver_version: require('mongodb/package.json').version,
    runtime: 'Node.js',
    runtime_version: process.versions.node,
    roles: ['produce', 'consume'],
    in_flight: ['one', 'bounded', 'unbounded'],
    unbounded: 'driver',
    modes: ['tailable', 'change-stream', 'poll'],
    pool: true,
  });
}

async function produce(argv) {
  const options = common.parse(argv, common.PRODUCE);
  const stamps = new common.Stamps(options.output);
  const control = new common.Control();
  const { Producer } = require('./producer.js');
  const producer = new Producer(options, control, stamps, (event) => common.emit({ event: 'failed', ...event }));
  await producer.open().catch((error) => common.fail(4, `cannot use the server: ${error.message}`));
  await control.ready();
  await producer.run();
  common.emit({ event: 'done', ...stamps.close() });
  process.exit(control.exitCode);
}

async function consume(argv) {
  const options = common.parse(argv, common.CONSUME);
  const stamps = new common.Stamps(options.output);
  const control = new common.Control();
  const { Consumer } = require('./consumer.js');
  const consumer = new Consumer(options, control, stamps, (event) => common.emit({ event: 'reopened', ...event }));
  await consumer.open().catch((error) => common.fail(4, `cannot use the server: ${error.message}`));
  await control.ready();
  const done = await consumer.run();
  stamps.flush();
  common.emit({ event: 'done', ...done });
  process.exit(control.exitCode);
}

async function main(role, argv) {
  const roles = { version: () => version('mongodb'), produce, consume };
  if (!Object.hasOwn(roles, role)) common.fail(2, `\`${role}\` is not one of version, produce, consume`);
  try {
    await roles[role](argv);
  } catch (error) {
    common.fail(error instanceof common.Usage ? 2 : 1, error.message);
  }
}

module.exports = { version };

if (require.main === module) main(process.argv[2], process.argv.slice(3));
